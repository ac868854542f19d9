/* SPDX-License-Identifier: Apache-2.0 */
/* Preprocessing into a network's input: data/augment.h computes [H, W, C] floats, which are stored
 * in the input's layout and type. */
#include "format/image_input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/augment.h"
#include "data/clip_file.h"
#include "data/image_file.h"

struct ew_image_input {
    struct ew_augmenter *augmenter;
    struct ew_preprocess prep;
    int64_t size[3]; /* H, W, C; clips are frames stacked along H */
    int64_t frames;  /* of a clip; 1: images */
    bool clips;
    bool channels_last, batched;
    float *made; /* [H, W, C] */
};

/* The layout: as the value says, else channels first if that dimension is 1 or 3. */
static bool channels_last(const struct ew_value *v)
{
    const struct ew_shape *s = &v->t.shape;
    const int64_t first = s->dim[s->rank == 5 ? 1 : s->rank - 3];
    return v->channels_last || (first != 1 && first != 3);
}

static ew_err find_size(const struct ew_value *v, const char *what, struct ew_image_input *in)
{
    const struct ew_shape *s = &v->t.shape;
    char text[EW_SHAPE_TEXT];
    EW_CHECK(s->rank >= 3 && s->rank <= 5, EW_ERR_SHAPE,
             "%s: input %s of %s takes neither images nor clips", what, v->name,
             ew_shape_text(s, text));
    const int64_t *d = s->dim + s->rank - 3; /* H, W, C, or the last three of C, T, H, W */
    in->channels_last = channels_last(v);
    in->batched = s->rank >= 4;
    in->clips = s->rank == 5;
    in->frames = in->clips ? s->dim[in->channels_last ? 1 : 2] : 1;
    const bool shifted = !in->channels_last && s->rank < 5;
    in->size[0] = d[in->channels_last ? 0 : 1] * in->frames;
    in->size[1] = d[in->channels_last ? 1 : 2];
    in->size[2] = in->channels_last ? d[2] : shifted ? d[0] : s->dim[1];
    EW_CHECK((in->size[2] == 1 || in->size[2] == 3) && in->size[0] > 0 && in->size[1] > 0,
             EW_ERR_SHAPE, "%s: input %s of %s is not an image: %lld channels", what, v->name,
             ew_shape_text(s, text), (long long)in->size[2]);
    return EW_OK;
}

static ew_err set_up(const struct ew_value *v, const char *what, struct ew_image_input *in)
{
    EW_TRY(find_size(v, what, in));
    if (v->t.dtype == EW_U8 && !in->prep.normalised) {
        in->prep.normalised = true;
        for (int i = 0; i < EW_SAMPLE_CHANNELS; i++) {
            in->prep.mean[i] = 0;
            in->prep.std[i] = 1.0 / 255;
        }
    }
    EW_TRY(ew_preprocess_check(&in->prep, what));
    const struct ew_image_spec spec = {
        .h = in->size[0] / in->frames, .w = in->size[1], .c = in->size[2], .prep = in->prep};
    EW_TRY(ew_augmenter_new(&spec, &in->augmenter));
    in->made = malloc((size_t)(in->size[0] * spec.w * spec.c) * sizeof(*in->made));
    EW_CHECK(in->made, EW_ERR_MEMORY, "%s: no memory for an image", what);
    return EW_OK;
}

ew_err ew_image_input_new(const struct ew_value *v, const struct ew_preprocess *p, const char *what,
                          struct ew_image_input **out)
{
    struct ew_image_input *in = calloc(1, sizeof(*in));
    EW_CHECK(in, EW_ERR_MEMORY, "%s: no memory for an image", what);
    in->prep = *p;
    const ew_err e = set_up(v, what, in);
    if (e != EW_OK)
        ew_image_input_free(in);
    else
        *out = in;
    return e;
}

void ew_image_input_free(struct ew_image_input *in)
{
    if (!in)
        return;
    ew_augmenter_free(in->augmenter);
    free(in->made);
    free(in);
}

const int64_t *ew_image_input_size(const struct ew_image_input *in)
{
    return in->size;
}

const char *ew_image_input_text(const struct ew_image_input *in, char buf[EW_IMAGE_INPUT_CHARS])
{
    const int64_t frame[] = {in->size[0] / in->frames, in->size[1], in->size[2]};
    struct ew_preprocess prep = in->prep;
    if (!in->clips)
        return ew_preprocess_text(&prep, frame, buf);
    char text[EW_PREPROCESS_CHARS];
    if (prep.resize == EW_RESIZE_DEFAULT) /* decoders make frames that cover the input */
        prep.resize = EW_RESIZE_COVER;
    ew_preprocess_text(&prep, frame, text);
    snprintf(buf, EW_IMAGE_INPUT_CHARS, "%lld frames, each %s", (long long)in->frames, text);
    return buf;
}

/* Image `index` of the batch. */
static ew_err image_at(const struct ew_image_input *in, int64_t index, struct ew_tensor *to)
{
    const int64_t batch = in->batched ? to->shape.dim[0] : 1;
    EW_CHECK(index >= 0 && index < batch, EW_ERR_ARG, "image %lld of a batch of %lld",
             (long long)index, (long long)batch);
    if (in->batched)
        to->shape.dim[0] = 1;
    to->data = (char *)to->data + (size_t)index * ew_tensor_bytes(to);
    return EW_OK;
}

/* Preprocesses an image, or each frame of a clip. */
static ew_err make(struct ew_image_input *in, const struct ew_sample *image)
{
    const int64_t n = in->frames, size = in->size[0] * in->size[1] * in->size[2] / n;
    struct ew_sample frame = *image;
    EW_CHECK(image->h % n == 0, EW_ERR_SHAPE,
             "a clip of %lld frames, one below the other, cannot have %lld rows", (long long)n,
             (long long)image->h);
    frame.h = image->h / n;
    for (int64_t i = 0; i < n; i++) {
        frame.pixels = image->pixels + i * frame.h * image->sy;
        EW_TRY(ew_augmenter_run(in->augmenter, &frame, 0, 0, in->made + i * size));
    }
    return EW_OK;
}

ew_err ew_image_input_put(struct ew_image_input *in, const struct ew_sample *image, int64_t index,
                          struct ew_tensor *to)
{
    struct ew_tensor one = *to;
    EW_TRY(image_at(in, index, &one));
    EW_TRY(make(in, image));
    const int64_t pixels = in->size[0] * in->size[1], channels = in->size[2];
    const float *from = in->made;
    for (int64_t i = 0; i < pixels; i++) {
        for (int64_t c = 0; c < channels; c++) {
            const double e = (double)*from++;
            ew_tensor_store(&one, in->channels_last ? i * channels + c : c * pixels + i, 1, &e);
        }
    }
    return EW_OK;
}

static ew_err read_clip(struct ew_image_input *in, const char *path, int64_t index,
                        struct ew_tensor *to)
{
    const int64_t size[] = {in->size[0] / in->frames, in->size[1]};
    const double grow = ew_preprocess_grow(&in->prep, size, size);
    const struct ew_clip_opts o = {.frames = in->frames,
                                   .stride = 1,
                                   .h = llround(grow * (double)size[0]),
                                   .w = llround(grow * (double)size[1])};
    const int64_t h = o.frames * o.h, w = o.w;
    EW_CHECK(in->size[2] == 3, EW_ERR_UNSUPPORTED, "%s: the network takes clips of %lld channels",
             path, (long long)in->size[2]);
    EW_CLEANUP(ew_free_ptr) uint8_t *pixels = malloc((size_t)(h * w * 3));
    EW_CHECK(pixels, EW_ERR_MEMORY, "%s: no memory for a clip", path);
    EW_TRY(ew_clip_read(path, &o, pixels));
    const struct ew_sample clip = {
        .h = h, .w = w, .c = 3, .sy = w * 3, .sx = 3, .sc = 1, .pixels = pixels};
    return ew_image_input_put(in, &clip, index, to);
}

ew_err ew_image_input_read(struct ew_image_input *in, const char *path, int64_t index,
                           struct ew_tensor *to)
{
    if (in->clips)
        return read_clip(in, path, index, to);
    struct ew_arena a;
    struct ew_tensor t;
    ew_arena_init(&a);
    ew_err e = ew_image_read(path, (int)in->size[2], &a, &t);
    if (e == EW_OK) {
        const struct ew_sample image = ew_image_sample(&t);
        e = ew_image_input_put(in, &image, index, to);
    }
    ew_arena_fini(&a);
    return e;
}
