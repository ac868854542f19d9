/* SPDX-License-Identifier: Apache-2.0 */
/* Accuracy of exactly what is timed: the side's own plan over a data set. */
#include <string.h>

#include "cli/bench_side.h"
#include "graph/layout.h"
#include "train/scores.h"

/* Height, width and channels of the first input, and whether they come in this order. */
static ew_err image_size(const struct ew_side *s, int64_t size[3], bool *last)
{
    const struct ew_value *v = &s->g->values[s->g->inputs[0]];
    const struct ew_shape *in = &v->t.shape;
    char text[EW_SHAPE_TEXT];
    EW_CHECK(s->g->n_inputs == 1 && in->rank == 4 && v->t.dtype == EW_F32, EW_ERR_SHAPE,
             "%s: its input is %s of %s, no batch of images", s->name, ew_shape_text(in, text),
             ew_dtype_name(v->t.dtype));
    *last = v->channels_last || (in->dim[1] != 1 && in->dim[1] != 3);
    size[0] = in->dim[*last ? 1 : 2];
    size[1] = in->dim[*last ? 2 : 3];
    size[2] = in->dim[*last ? 3 : 1];
    return EW_OK;
}

/* A batch of images in the plan's input, turned where it wants channels first; the rest is 0. */
static void fill(const struct ew_batch *b, const int64_t size[3], bool last, struct ew_tensor *to)
{
    static const int to_first[] = {0, 3, 1, 2};
    struct ew_tensor from = {.dtype = EW_F32, .shape = {4, {b->n, size[0], size[1], size[2]}}};
    memcpy(&from.data, &b->images, sizeof(from.data)); /* only read */
    const size_t have = ew_tensor_bytes(&from);
    struct ew_tensor part = *to;
    part.shape.dim[0] = b->n;
    if (last)
        memcpy(to->data, b->images, have);
    else
        ew_tensor_permute(&from, to_first, &part);
    memset((char *)to->data + have, 0, ew_tensor_bytes(to) - have);
}

static ew_err classify(struct ew_side *s, struct ew_loader *l, const int64_t size[3], bool last,
                       struct ew_confusion *c)
{
    EW_TRY(ew_loader_start(l, 0, 0));
    for (;;) {
        const struct ew_batch *b;
        EW_TRY(ew_loader_next(l, &b));
        if (!b)
            return EW_OK;
        fill(b, size, last, ew_plan_input(s->p, 0));
        const ew_err e = ew_plan_run(s->p);
        if (e == EW_OK)
            ew_confusion_add(c, ew_plan_output(s->p, 0)->data, b->labels, b->n);
        ew_loader_release(l, b);
        EW_TRY(e);
    }
}

static ew_err run_set(struct ew_side *s, const struct ew_loader_opts *set, double *out)
{
    int64_t size[3] = {0};
    bool last = true;
    EW_TRY(image_size(s, size, &last));
    const struct ew_tensor *scores = ew_plan_output(s->p, 0);
    const int64_t classes = ew_tensor_count(scores) / s->batch;
    EW_CHECK(scores->dtype == EW_F32 && classes >= 2, EW_ERR_SHAPE,
             "%s: its output is no row of scores", s->name);
    struct ew_loader_opts o = *set;
    o.batch = s->batch;
    o.shuffle = o.drop_last = o.refill = false;
    o.augment = (struct ew_augment){0};
    o.h = size[0];
    o.w = size[1];
    o.c = size[2];
    struct ew_loader *l;
    struct ew_confusion c;
    EW_TRY(ew_confusion_init(&c, classes));
    ew_err e = ew_loader_open(&o, &l);
    if (e == EW_OK) {
        e = classify(s, l, size, last, &c);
        ew_loader_close(l);
    }
    *out = ew_confusion_scores(&c).accuracy;
    ew_confusion_fini(&c);
    return e;
}

ew_err ew_side_accuracy(struct ew_cmd_call *c, struct ew_side *s, const char *data, double *out)
{
    const struct ew_classifier k = {.net = s->g, .prep = s->prep};
    struct ew_image_set set;
    ew_err e = ew_image_set_open(c, data, &k, false, &set);
    if (e == EW_OK)
        e = run_set(s, &set.loader, out);
    ew_image_set_close(&set);
    return e;
}
