/* SPDX-License-Identifier: Apache-2.0 */
/* Runs images through a network one at a time. */
#include "measure/image_stream.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/progress.h"
#include "data/image_file.h"
#include "format/image_input.h"

#define CAMERA_IMAGES 64 /* distinct frames that the emulated camera shows */

struct stream {
    const struct ew_image_stream *s;
    struct ew_tensor *to; /* the network's input */
    struct ew_image_input *images;
    int64_t *ns; /* latency of each frame */
    int cap;
    struct ew_image_stream_result *out;
};

static ew_err note(struct stream *t, int64_t ns)
{
    EW_TRY(ew_grow((void **)&t->ns, &t->cap, (int)t->out->n + 1, sizeof(*t->ns)));
    t->ns[t->out->n++] = ns;
    t->out->late += (double)ns * 1e-6 > t->s->budget_ms;
    return EW_OK;
}

/* Notes a file that cannot be read. */
static void leave_out(struct stream *t)
{
    EW_WARN("left out: %s", ew_error_message());
    t->out->bad++;
}

static ew_err check_any(const struct stream *t)
{
    EW_CHECK(t->out->bad < t->s->n, EW_ERR_FORMAT, "%s: none of %d images can be read", t->s->name,
             t->s->n);
    return EW_OK;
}

/* Back to back; the time includes reading the file. */
static ew_err run_files(struct stream *t)
{
    for (int i = 0; i < t->s->n; i++) {
        const char *path = t->s->paths[i];
        const int64_t start = ew_clock_ns();
        if (ew_image_input_read(t->images, path, 0, t->to) != EW_OK) {
            leave_out(t);
            continue;
        }
        const int64_t ready = ew_clock_ns();
        EW_TRY(ew_plan_run(t->s->p));
        const int64_t end = ew_clock_ns();
        EW_TRY(note(t, end - start));
        t->s->show(t->s->ctx, path, ready - start, end - ready);
    }
    return check_any(t);
}

static ew_err run_frame(struct stream *t, const struct ew_sample *image)
{
    EW_TRY(ew_image_input_put(t->images, image, 0, t->to));
    return ew_plan_run(t->s->p);
}

static ew_err run_frames(struct stream *t, const struct ew_sample *images, int n_images)
{
    const struct ew_image_stream *s = t->s;
    const double period = 1e9 / s->fps;
    const int64_t frames = s->seconds > 0 ? (int64_t)ceil(s->seconds * s->fps) : (int64_t)s->n;
    EW_TRY(run_frame(t, &images[0])); /* warm-up */
    struct ew_progress bar;
    ew_progress_begin(&bar, s->talk, "frames", frames);
    const int64_t start = ew_clock_ns();
    for (int64_t k = 0; k < frames;) {
        const int64_t there = start + (int64_t)((double)k * period);
        if (ew_clock_ns() < there)
            ew_clock_sleep_until(there, NULL);
        EW_TRY(run_frame(t, &images[k % n_images]));
        const int64_t now = ew_clock_ns();
        EW_TRY(note(t, now - there));
        const int64_t newest = ew_min_i64((int64_t)((double)(now - start) / period), frames);
        t->out->lost += newest > k + 1 ? newest - k - 1 : 0;
        k = ew_max_i64(newest, k + 1);
        ew_progress_update(&bar, k);
    }
    ew_progress_end(&bar);
    return EW_OK;
}

static ew_err run_camera(struct stream *t)
{
    int n = 0;
    const int channels = (int)ew_image_input_size(t->images)[2];
    struct ew_sample images[CAMERA_IMAGES];
    struct ew_arena a;
    ew_arena_init(&a);
    for (int i = 0; n < CAMERA_IMAGES && i < t->s->n; i++) {
        struct ew_tensor image;
        if (ew_image_read(t->s->paths[i], channels, &a, &image) == EW_OK)
            images[n++] = ew_image_sample(&image);
        else
            leave_out(t);
    }
    ew_err e = check_any(t);
    if (e == EW_OK)
        e = run_frames(t, images, n);
    ew_arena_fini(&a);
    return e;
}

ew_err ew_image_stream_run(const struct ew_image_stream *s, struct ew_image_stream_result *out)
{
    const struct ew_graph *g = s->net->graph;
    *out = (struct ew_image_stream_result){.n = 0};
    EW_CHECK(g->n_inputs == 1, EW_ERR_USAGE, "%s: has %d inputs, images are for one", s->name,
             g->n_inputs);
    const struct ew_value *v = &g->values[g->inputs[0]];
    EW_CHECK(v->t.shape.rank < 4 || v->t.shape.dim[0] == 1, EW_ERR_USAGE,
             "%s: takes %lld images at a time, a stream has one", s->name,
             (long long)v->t.shape.dim[0]);
    char text[EW_IMAGE_INPUT_CHARS];
    struct stream t = {.s = s, .to = ew_plan_input(s->p, 0), .out = out};
    EW_TRY(ew_image_input_new(v, &s->net->card.prep, g->name, &t.images));
    EW_INFO("images: %s", ew_image_input_text(t.images, text));
    const ew_err e = s->fps > 0 ? run_camera(&t) : run_files(&t);
    ew_bench_stats(t.ns, out->n, &out->time);
    ew_image_input_free(t.images);
    free(t.ns);
    return e;
}
