/* SPDX-License-Identifier: Apache-2.0 */
/* Frames circulate through three queues: free, decoded, done. */
#include "measure/video_stream.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/queue.h"
#include "format/image_input.h"
#include "model/loss_table.h"

#define SLOTS 12 /* frames in circulation */

struct video {
    const struct ew_video_stream *v;
    struct ew_video_source source;
    struct ew_video_step slots[SLOTS];
    struct ew_queue free, decoded, done;
    bool drops, reconstructs;
    int64_t start_ns;
    /* Owned by the decoding thread until it is joined: */
    ew_err source_err;
    char source_why[512];
    int64_t dropped;
    /* Owned by the calling thread: */
    struct ew_image_input *images;
    int64_t frames, side[2], window, hop; /* frames per clip, and their size */
    uint8_t *history;                     /* [window, h, w, 3], ring buffer */
    uint8_t *clip;                        /* [frames, h, w, 3] */
    int64_t seen, n_predictions, cap, late, run_ns;
    int64_t *ns; /* latencies from frame to prediction */
};

/* ---- Decoding ---- */

/* A slot for the next frame: a free one, or with dropping the oldest one waiting for inference. */
static struct ew_video_step *take_slot(struct video *t)
{
    void *slot = NULL;
    if (!t->drops)
        return ew_queue_pop(&t->free, &slot) ? slot : NULL;
    if (ew_queue_try_pop(&t->free, &slot))
        return slot;
    if (ew_queue_try_pop(&t->decoded, &slot)) {
        t->dropped++;
        return slot;
    }
    return ew_queue_pop(&t->free, &slot) ? slot : NULL; /* one that is being shown */
}

static bool is_over(const struct video *t)
{
    const double since = (double)(ew_clock_ns() - t->start_ns) * 1e-9;
    return *t->v->stop || (t->v->seconds > 0 && since >= t->v->seconds);
}

static void *decode_all(void *opaque)
{
    struct video *t = opaque;
    bool end = false;
    while (t->source_err == EW_OK && !end && !is_over(t)) {
        struct ew_video_step *s = take_slot(t);
        if (!s)
            break;
        const int64_t number = t->source.n;
        t->source_err = ew_video_source_next(&t->source, t->v->stop, &s->frame, &end);
        if (t->source_err != EW_OK) {
            snprintf(t->source_why, sizeof(t->source_why), "%s", ew_error_message());
            break;
        }
        if (end)
            break;
        s->number = number;
        s->answered = false;
        s->so_far.frames = t->source.n;
        s->so_far.dropped = t->dropped;
        s->so_far.decode_ns = t->source.decode_ns;
        s->there_ns = ew_clock_ns();
        s->time_s = t->v->fps > 0 ? (double)number / t->v->fps : (double)s->frame.time_us * 1e-6;
        if (t->v->fps > 0) {
            s->there_ns = t->start_ns + (int64_t)((double)number * 1e9 / t->v->fps);
            ew_clock_sleep_until(s->there_ns, t->v->stop);
        }
        if (!ew_queue_push(&t->decoded, s))
            break;
    }
    ew_queue_close(&t->decoded);
    return NULL;
}

/* ---- The network ---- */

/* Samples the clip evenly from the last `have` frames of the window; if there are too few, the last
 * one is repeated. */
static void gather(struct video *t)
{
    const int64_t size = 3 * t->side[0] * t->side[1];
    const int64_t have = ew_min_i64(t->seen, t->window), from = t->seen - have;
    for (int64_t i = 0; i < t->frames; i++) {
        const int64_t at = t->window >= t->frames ? i * t->window / t->frames : i;
        const int64_t k = from + ew_min_i64(at, have - 1);
        memcpy(t->clip + i * size, t->history + k % t->window * size, (size_t)size);
    }
}

static ew_err note(struct video *t, int64_t ns)
{
    if (t->n_predictions == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 256;
        int64_t *more = realloc(t->ns, (size_t)t->cap * sizeof(*more));
        EW_CHECK(more, EW_ERR_MEMORY, "no memory for %lld times", (long long)t->cap);
        t->ns = more;
    }
    t->ns[t->n_predictions++] = ns;
    t->late += (double)ns * 1e-6 > t->v->budget_ms;
    return EW_OK;
}

static struct ew_tensor *input_of(const struct video *t)
{
    return t->v->slide ? ew_slide_input(t->v->slide) : ew_plan_input(t->v->p, 0);
}

static ew_err run_network(const struct video *t)
{
    return t->v->slide ? ew_slide_run(t->v->slide) : ew_plan_run(t->v->p);
}

static const struct ew_tensor *output_of(const struct video *t)
{
    return t->v->slide ? ew_slide_output(t->v->slide, 0) : ew_plan_output(t->v->p, 0);
}

static ew_err predict(struct video *t, struct ew_video_step *s)
{
    const int64_t start = ew_clock_ns(), h = t->side[0], w = t->side[1];
    struct ew_tensor *to = input_of(t);
    const struct ew_sample clip = {
        .h = t->frames * h, .w = w, .c = 3, .sy = 3 * w, .sx = 3, .sc = 1, .pixels = t->clip};
    gather(t);
    EW_TRY(ew_image_input_put(t->images, &clip, 0, to));
    EW_TRY(run_network(t));
    const struct ew_tensor *y = output_of(t);
    if (t->reconstructs)
        s->error =
            ew_loss_of(ew_loss_chosen(0, t->v->net->graph), y->data, to->data, ew_tensor_count(y));
    s->n_top = t->reconstructs ? 0 : ew_top_classes(y, EW_VIDEO_TOP, s->top);
    const int64_t end = ew_clock_ns();
    s->answered = true;
    s->late_ns = end - s->there_ns;
    t->run_ns += end - start;
    return note(t, s->late_ns);
}

static void count(const struct video *t, struct ew_video_step *s)
{
    s->so_far.predictions = t->n_predictions;
    s->so_far.late = t->late;
    s->so_far.run_ns = t->run_ns;
}

static ew_err infer_all(struct video *t)
{
    const int64_t size = 3 * t->side[0] * t->side[1];
    void *item;
    ew_err e = EW_OK;
    struct ew_video_step *waiting = NULL; /* of a clip that may be too short */
    while (e == EW_OK && ew_queue_pop(&t->decoded, &item)) {
        struct ew_video_step *s = item;
        if (!t->drops) /* not live: latency counts from here */
            s->there_ns = ew_clock_ns();
        memcpy(t->history + t->seen++ % t->window * size, s->frame.pixels.at, (size_t)size);
        if (t->seen >= t->window && (t->seen - t->window) % t->hop == 0)
            e = predict(t, s);
        count(t, s);
        if (waiting)
            ew_queue_push(&t->done, waiting);
        waiting = t->n_predictions ? NULL : s;
        if (!waiting)
            ew_queue_push(&t->done, s);
    }
    if (e == EW_OK && waiting)
        e = predict(t, waiting);
    if (waiting)
        count(t, waiting);
    if (waiting)
        ew_queue_push(&t->done, waiting);
    ew_queue_close(&t->free); /* stops the source if inference failed */
    return e;
}

/* ---- All of it ---- */

#define WORTH 0.9 /* share of the arithmetic: more is not worth the copies */

ew_err ew_video_stream_slide(const struct ew_graph *g, int64_t window, int64_t hop,
                             const struct ew_plan_opts *o, struct ew_slide **out)
{
    const struct ew_value *x = g->n_inputs ? &g->values[g->inputs[0]] : NULL;
    *out = NULL;
    if (g->n_inputs != 1 || x->t.shape.rank != 5 || x->t.shape.dim[0] != 1)
        return EW_OK;
    const int64_t frames = x->t.shape.dim[x->channels_last ? 1 : 2];
    const int64_t apart = window ? window / frames : 1; /* stride of gather() */
    if (hop == 0 || hop >= (window ? window : frames) || (window && window != apart * frames) ||
        hop % apart != 0)
        return EW_OK;
    EW_TRY(ew_slide_new(g, hop / apart, o, out));
    if (*out && ew_slide_share(*out) > WORTH) {
        ew_slide_free(*out);
        *out = NULL;
    }
    return EW_OK;
}

static ew_err check(const struct ew_video_stream *v, struct video *t)
{
    const struct ew_graph *g = v->net->graph;
    const struct ew_value *x = &g->values[g->inputs[0]];
    EW_CHECK(g->n_inputs == 1 && x->t.shape.rank == 5 && x->t.shape.dim[0] == 1, EW_ERR_USAGE,
             "%s: does not take one clip at a time", v->name);
    EW_TRY(ew_image_input_new(x, &v->net->card.prep, g->name, &t->images));
    const int64_t *size = ew_image_input_size(t->images);
    EW_CHECK(size[2] == 3, EW_ERR_UNSUPPORTED, "%s: takes frames of %lld channels, not 3", v->name,
             (long long)size[2]);
    t->frames = x->t.shape.dim[x->channels_last ? 1 : 2];
    t->side[0] = size[0] / t->frames;
    t->side[1] = size[1];
    t->window = v->window ? v->window : t->frames;
    t->hop = v->hop ? v->hop : t->frames;
    t->reconstructs = ew_net_reconstructs(g);
    const size_t frame = (size_t)(3 * t->side[0] * t->side[1]);
    t->history = malloc((size_t)t->window * frame);
    t->clip = malloc((size_t)t->frames * frame);
    EW_CHECK(t->history && t->clip, EW_ERR_MEMORY, "no memory for a window of %lld frames",
             (long long)t->window);
    return EW_OK;
}

/* Reports how frames are resized, and the size of raw frames. */
static void say_frames(const struct video *t)
{
    char text[EW_IMAGE_INPUT_CHARS];
    ew_image_input_text(t->images, text);
    if (strcmp(t->v->source, "-") == 0)
        EW_INFO("standard input: raw RGB, a byte each, %lld wide and %lld high; %s",
                (long long)t->side[1], (long long)t->side[0], text);
    else
        EW_INFO("%s: %s", t->v->source, text);
}

static void *show_all(void *opaque)
{
    struct video *t = opaque;
    void *item;
    while (ew_queue_pop(&t->done, &item)) {
        t->v->show(t->v->ctx, item);
        ew_queue_push(&t->free, item);
    }
    return NULL;
}

static ew_err run_threads(struct video *t)
{
    pthread_t decoder, shower;
    t->start_ns = ew_clock_ns();
    if (t->v->seconds > 0)
        t->source.until_ns = t->start_ns + (int64_t)(t->v->seconds * 1e9);
    EW_CHECK(pthread_create(&shower, NULL, show_all, t) == 0, EW_ERR_IO,
             "cannot start the display thread");
    ew_err e = EW_OK;
    const bool decodes = pthread_create(&decoder, NULL, decode_all, t) == 0;
    if (decodes)
        e = infer_all(t);
    else
        e = ew_fail(EW_ERR_IO, "cannot start the decoder thread");
    char why[512];
    snprintf(why, sizeof(why), "%s", e == EW_OK ? "" : ew_error_message());
    if (decodes)
        pthread_join(decoder, NULL);
    ew_queue_close(&t->done);
    pthread_join(shower, NULL);
    if (e != EW_OK)
        return ew_fail(e, "%s", why);
    if (t->source_err != EW_OK && t->n_predictions == 0)
        return ew_fail(t->source_err, "%s", t->source_why);
    if (t->source_err != EW_OK)
        EW_WARN("%s, after %lld frames", t->source_why, (long long)t->source.n);
    EW_CHECK(t->source.n > 0 || *t->v->stop, EW_ERR_FORMAT, "%s: has no frames", t->v->source);
    return EW_OK;
}

static ew_err open_queues(struct video *t)
{
    EW_TRY(ew_queue_init(&t->free, SLOTS));
    EW_TRY(ew_queue_init(&t->decoded, SLOTS));
    EW_TRY(ew_queue_init(&t->done, SLOTS));
    for (int i = 0; i < SLOTS; i++)
        ew_queue_push(&t->free, &t->slots[i]);
    return EW_OK;
}

static ew_err run(struct video *t)
{
    const struct ew_video_stream *v = t->v;
    EW_TRY(check(v, t));
    const struct ew_video_opts o = {.stride = 1, .h = t->side[0], .w = t->side[1], .full = v->full};
    EW_TRY(ew_video_source_open(v->source, &o, &t->source));
    say_frames(t);
    t->drops = t->source.live || v->fps > 0;
    memset(t->clip, 0, (size_t)(3 * t->frames * t->side[0] * t->side[1]));
    if (!v->slide)
        EW_TRY(ew_plan_run(v->p)); /* warm-up */
    EW_TRY(open_queues(t));
    return run_threads(t);
}

static void sum_up(const struct video *t, struct ew_video_stream_result *out)
{
    *out = (struct ew_video_stream_result){
        .counts = {t->source.n, t->dropped, t->n_predictions, t->late, t->source.decode_ns,
                   t->run_ns},
        .window = t->window,
        .hop = t->hop,
        .size_changes = t->source.size_changes,
        .reopened = t->source.reopened,
        .wall_s = fmax((double)(ew_clock_ns() - t->start_ns) * 1e-9, 1e-9)};
    snprintf(out->source_error, sizeof(out->source_error), "%s", t->source_why);
    if (t->n_predictions)
        ew_bench_stats(t->ns, t->n_predictions, &out->time);
}

ew_err ew_video_stream_run(const struct ew_video_stream *v, struct ew_video_stream_result *out)
{
    struct video *t = calloc(1, sizeof(*t));
    *out = (struct ew_video_stream_result){0};
    EW_CHECK(t, EW_ERR_MEMORY, "no memory");
    t->v = v;
    const ew_err e = run(t);
    sum_up(t, out);
    ew_video_source_close(&t->source);
    ew_image_input_free(t->images);
    for (int i = 0; i < SLOTS; i++)
        ew_video_frame_fini(&t->slots[i].frame);
    struct ew_queue *const queues[] = {&t->free, &t->decoded, &t->done};
    for (size_t i = 0; i < EW_COUNT(queues); i++)
        if (queues[i]->slots)
            ew_queue_fini(queues[i]);
    free(t->history);
    free(t->clip);
    free(t->ns);
    free(t);
    return e;
}
