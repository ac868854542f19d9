/* SPDX-License-Identifier: Apache-2.0 */
/* Video through a network, by three threads that hand on frames: one takes them from the source,
 * the calling one keeps the last `window` of them and runs the network every `hop`, one shows the
 * answers.  Frames go round through three queues: free, decoded, done.
 *
 * Of a camera, or with --fps, whoever is late finds the newest frames; the oldest that wait are
 * dropped, and counted. */
#include "cli/run_video.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/queue.h"
#include "bench/bench.h"
#include "cli/answer_sheet.h"
#include "cli/canvas.h"
#include "cli/video_page.h"
#include "cli/video_source.h"
#include "data/clip_writer.h"
#include "model/loss_table.h"

#define SLOTS 12 /* frames on their way */

struct slot {
    struct ew_video_frame frame;
    int64_t number;   /* in the source, from 0 */
    int64_t there_ns; /* when it could be had */
    bool answered;    /* the network ran on the window that ends here */
    int64_t best;     /* -1: the output is no row of scores */
    double share;     /* of the best class; of an autoencoder the error */
    int64_t late_ns;  /* from the frame to the answer */
    struct ew_run_class top[EW_RUN_TOP];
    int n_top;
    struct ew_video_counts so_far; /* by the thread that each number belongs to */
};

struct video {
    const struct ew_run_video *v;
    struct ew_video_source source;
    struct slot slots[SLOTS];
    struct ew_queue free, decoded, done;
    bool drops, reconstructs;
    int64_t start_ns;
    /* The decoding thread's until it is joined. */
    ew_err source_err;
    char source_why[512];
    int64_t dropped;
    /* The calling thread's. */
    struct ew_image_input *images;
    int64_t frames, side[2], window, hop; /* the network's frames and their size */
    uint8_t *history;                     /* [window, h, w, 3], a ring */
    uint8_t *clip;                        /* [frames, h, w, 3] */
    int64_t seen, n_answers, cap, late, run_ns;
    int64_t *ns; /* from frame to answer */
    /* The showing thread's until it is joined. */
    struct ew_json json;
    struct slot last; /* answer, its frame left out; `answered`: there is one */
    struct ew_clip_writer *writer;
    struct ew_answer_sheet sheet;
    struct ew_video_page page;
    ew_err write_err;
    char write_why[512];
};

static volatile int asked_to_stop;

static void on_signal(int signal)
{
    asked_to_stop = signal;
}

/* ---- Decoding ---- */

static void sleep_until(int64_t ns)
{
    const struct timespec at = {.tv_sec = (time_t)(ns / EW_NS_PER_S),
                                .tv_nsec = (long)(ns % EW_NS_PER_S)};
    while (!asked_to_stop && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

/* A slot for the next frame: a free one, or the oldest that waits for the network. */
static struct slot *take_slot(struct video *t)
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
    return asked_to_stop || (t->v->seconds > 0 && since >= t->v->seconds);
}

static void *decode_all(void *opaque)
{
    struct video *t = opaque;
    bool end = false;
    while (t->source_err == EW_OK && !end && !is_over(t)) {
        struct slot *s = take_slot(t);
        if (!s)
            break;
        const int64_t number = t->source.n;
        t->source_err = ew_video_source_next(&t->source, &asked_to_stop, &s->frame, &end);
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
        if (t->v->fps > 0) {
            s->there_ns = t->start_ns + (int64_t)((double)number * 1e9 / t->v->fps);
            sleep_until(s->there_ns);
        }
        if (!ew_queue_push(&t->decoded, s))
            break;
    }
    ew_queue_close(&t->decoded);
    return NULL;
}

/* ---- The network ---- */

/* The network's frames out of the last `have` of the window, evenly spread; where there are too few
 * the last one is repeated. */
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
    if (t->n_answers == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 256;
        int64_t *more = realloc(t->ns, (size_t)t->cap * sizeof(*more));
        EW_CHECK(more, EW_ERR_MEMORY, "no memory for %lld times", (long long)t->cap);
        t->ns = more;
    }
    t->ns[t->n_answers++] = ns;
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

static ew_err answer(struct video *t, struct slot *s)
{
    const int64_t start = ew_clock_ns(), h = t->side[0], w = t->side[1];
    struct ew_tensor *to = input_of(t);
    const struct ew_sample clip = {
        .h = t->frames * h, .w = w, .c = 3, .sy = 3 * w, .sx = 3, .sc = 1, .pixels = t->clip};
    gather(t);
    EW_TRY(ew_image_input_put(t->images, &clip, 0, to));
    EW_TRY(run_network(t));
    const struct ew_tensor *y = output_of(t);
    s->best = -1;
    if (t->reconstructs)
        s->share =
            ew_loss_of(ew_loss_chosen(0, t->v->net->graph), y->data, to->data, ew_tensor_count(y));
    s->n_top = t->reconstructs ? 0 : ew_run_best(y, s->top);
    if (s->n_top) {
        s->best = s->top[0].index;
        s->share = s->top[0].share;
    }
    const int64_t end = ew_clock_ns();
    s->answered = true;
    s->late_ns = end - s->there_ns;
    t->run_ns += end - start;
    return note(t, s->late_ns);
}

static void count(const struct video *t, struct slot *s)
{
    s->so_far.answers = t->n_answers;
    s->so_far.late = t->late;
    s->so_far.run_ns = t->run_ns;
}

static ew_err infer_all(struct video *t)
{
    const int64_t size = 3 * t->side[0] * t->side[1];
    void *item;
    ew_err e = EW_OK;
    struct slot *waiting = NULL; /* of a clip that may be too short for a whole window */
    while (e == EW_OK && ew_queue_pop(&t->decoded, &item)) {
        struct slot *s = item;
        if (!t->drops) /* it has waited for nobody */
            s->there_ns = ew_clock_ns();
        memcpy(t->history + t->seen++ % t->window * size, s->frame.pixels.at, (size_t)size);
        if (t->seen >= t->window && (t->seen - t->window) % t->hop == 0)
            e = answer(t, s);
        count(t, s);
        if (waiting)
            ew_queue_push(&t->done, waiting);
        waiting = t->n_answers ? NULL : s;
        if (!waiting)
            ew_queue_push(&t->done, s);
    }
    if (e == EW_OK && waiting)
        e = answer(t, waiting);
    if (waiting)
        count(t, waiting);
    if (waiting)
        ew_queue_push(&t->done, waiting);
    ew_queue_close(&t->free); /* where the network failed, the source stops */
    return e;
}

/* ---- Showing ---- */

static double seconds_of(const struct video *t, const struct slot *s)
{
    return t->v->fps > 0 ? (double)s->number / t->v->fps : (double)s->frame.time_us * 1e-6;
}

static const char *label_of(const struct video *t, int64_t best)
{
    return best >= 0 && best < t->v->show.n_labels ? t->v->show.labels[best] : "";
}

static void json_answer(struct video *t, const struct slot *s)
{
    struct ew_json *j = &t->json;
    ew_json_object(j, NULL);
    ew_json_int(j, "frame", s->number);
    ew_json_num(j, "time_s", seconds_of(t, s));
    if (t->reconstructs)
        ew_json_num(j, "error", s->share);
    if (s->best >= 0) {
        ew_json_int(j, "class", s->best);
        ew_json_num(j, "share", s->share);
        if (*label_of(t, s->best))
            ew_json_str(j, "label", label_of(t, s->best));
    }
    ew_json_num(j, "latency_ms", (double)s->late_ns * 1e-6);
    ew_json_end(j);
}

static void show_answer(struct video *t, const struct slot *s)
{
    const char *label = label_of(t, s->best);
    if (t->v->json) {
        json_answer(t, s);
        return;
    }
    printf("%8.2f s  frame %5lld  ", seconds_of(t, s), (long long)s->number);
    if (t->reconstructs)
        printf("error %.5f  ", s->share);
    if (s->best >= 0)
        printf("class %lld  %.2f %%  %s%s", (long long)s->best, 100 * s->share, label,
               *label ? "  " : "");
    printf("%.2f ms\n", (double)s->late_ns * 1e-6);
    fflush(stdout);
}

static void answer_text(const struct video *t, const struct slot *a, char *out, size_t size)
{
    if (t->reconstructs)
        snprintf(out, size, "error %.4f", a->share);
    else if (*label_of(t, a->best))
        snprintf(out, size, "%s %.1f%%", label_of(t, a->best), 100 * a->share);
    else
        snprintf(out, size, "class %lld %.1f%%", (long long)a->best, 100 * a->share);
}

static ew_err add_to_sheet(struct video *t, const struct slot *s)
{
    const struct ew_video_frame *f = &s->frame;
    const struct ew_canvas c = {.w = f->full_w, .h = f->full_h, .rgb = f->full.at};
    char when[64], what[128];
    snprintf(when, sizeof(when), "frame %lld", (long long)s->number);
    answer_text(t, s, what, sizeof(what));
    return ew_answer_sheet_add(&t->sheet, &c, (const char *const[]){what, when});
}

/* The last answer at the frame's lower edge: its name, its share, and that as a bar. */
static void draw_answer(const struct video *t, struct ew_canvas *c)
{
    static const uint8_t dark[3] = {20, 20, 20}, light[3] = {240, 240, 240}, bar[3] = {40, 140, 60};
    const int64_t dot = ew_max_i64(1, c->h / 120), line = ew_canvas_text_height(dot) + 4 * dot;
    const struct slot *a = &t->last;
    char text[128];
    answer_text(t, a, text, sizeof(text));
    const double share = t->reconstructs ? 0 : fmin(fmax(a->share, 0), 1);
    ew_canvas_box(c, (struct ew_rect){0, c->h - line, c->w, line}, dark);
    ew_canvas_box(c, (struct ew_rect){0, c->h - line, (int64_t)(share * (double)c->w), line}, bar);
    ew_canvas_text(c, (const int64_t[]){2 * dot, c->h - line + 2 * dot}, dot, text, light);
}

static ew_err annotate(struct video *t, struct slot *s)
{
    struct ew_video_frame *f = &s->frame;
    struct ew_canvas c = {.w = f->full_w, .h = f->full_h, .rgb = f->full.at};
    if (!t->writer)
        EW_TRY(ew_clip_writer_open(t->v->annotate, f->full_h, f->full_w, &t->writer));
    if (t->last.answered)
        draw_answer(t, &c);
    return ew_clip_writer_put(t->writer, f->full.at, (const int64_t[]){f->full_h, f->full_w},
                              (int64_t)(1e6 * seconds_of(t, s)));
}

static ew_err show_on_page(struct video *t, const struct slot *s)
{
    const struct ew_canvas c = {
        .w = s->frame.full_w, .h = s->frame.full_h, .rgb = s->frame.full.at};
    if (s->answered) {
        struct ew_video_answer a = {.frame = s->number,
                                    .time_s = seconds_of(t, s),
                                    .latency_ms = (double)s->late_ns * 1e-6,
                                    .error = s->share,
                                    .n_top = s->n_top};
        memcpy(a.top, s->top, sizeof(a.top));
        ew_video_page_answer(&t->page, &a);
    }
    return ew_video_page_frame(&t->page, &c, s->number, &s->so_far);
}

/* A file that cannot be written is said at the end; the answers go on. */
static void keep_failure(struct video *t, ew_err e)
{
    if (e == EW_OK || t->write_err != EW_OK)
        return;
    t->write_err = e;
    snprintf(t->write_why, sizeof(t->write_why), "%s", ew_error_message());
}

static void *show_all(void *opaque)
{
    struct video *t = opaque;
    struct ew_video_counts last = {0};
    void *item;
    while (ew_queue_pop(&t->done, &item)) {
        struct slot *s = item;
        if (s->answered) {
            t->last = *s;
            show_answer(t, s);
            if (t->v->sheet && t->write_err == EW_OK)
                keep_failure(t, add_to_sheet(t, s));
        }
        if (t->v->live && t->write_err == EW_OK)
            keep_failure(t, show_on_page(t, s));
        if (t->v->annotate && t->write_err == EW_OK)
            keep_failure(t, annotate(t, s));
        last = s->so_far;
        ew_queue_push(&t->free, s);
    }
    if (t->v->live && t->write_err == EW_OK)
        keep_failure(t, ew_video_page_end(&t->page, &last));
    keep_failure(t, ew_clip_writer_close(t->writer));
    keep_failure(t, ew_answer_sheet_close(&t->sheet, t->v->sheet));
    return NULL;
}

/* ---- The sum of it ---- */

static void json_summary(struct video *t, const struct ew_bench_stats *b, double wall_s)
{
    struct ew_json *j = &t->json;
    ew_json_int(j, "frames", t->source.n);
    ew_json_int(j, "dropped", t->dropped);
    ew_json_int(j, "window", t->window);
    ew_json_int(j, "hop", t->hop);
    ew_json_int(j, "answers", t->n_answers);
    ew_json_num(j, "budget_ms", t->v->budget_ms);
    ew_json_int(j, "late", t->late);
    ew_json_num(j, "median_ms", b->median_ms);
    ew_json_num(j, "p99_ms", b->p99_ms);
    ew_json_num(j, "max_ms", b->max_ms);
    ew_json_num(j, "wall_s", wall_s);
    ew_json_num(j, "decode_share", (double)t->source.decode_ns * 1e-9 / wall_s);
    ew_json_num(j, "network_share", (double)t->run_ns * 1e-9 / wall_s);
    if (t->v->slide)
        ew_json_num(j, "computed_share", ew_slide_share(t->v->slide));
    ew_json_int(j, "size_changes", t->source.size_changes);
    ew_json_int(j, "reopened", t->source.reopened);
    if (*t->source_why)
        ew_json_str(j, "source_error", t->source_why);
}

static void print_summary(const struct video *t, const struct ew_bench_stats *b, double wall_s)
{
    printf("%lld frames, %lld dropped; %lld answers from %lld frames each, every %lld\n",
           (long long)t->source.n, (long long)t->dropped, (long long)t->n_answers,
           (long long)t->window, (long long)t->hop);
    if (t->n_answers)
        printf("latency: p50 %.2f ms, p99 %.2f, max %.2f, from a window's last frame to its "
               "answer\n",
               b->median_ms, b->p99_ms, b->max_ms);
    printf("time: %.2f s, %.1f frames/s; %s %.1f %% of it, network %.1f %%\n", wall_s,
           (double)t->source.n / wall_s,
           strcmp(t->v->source, "-") != 0 ? "decoding, in a process apart," : "reading",
           100 * (double)t->source.decode_ns * 1e-9 / wall_s,
           100 * (double)t->run_ns * 1e-9 / wall_s);
    if (t->v->slide)
        printf("windows overlap: %.0f %% of the arithmetic is done, the rest is kept\n",
               100 * ew_slide_share(t->v->slide));
    printf("deadlines of %.2f ms: %lld of %lld missed\n", t->v->budget_ms, (long long)t->late,
           (long long)t->n_answers);
    if (t->source.size_changes)
        printf("the frames' size changed %lld times\n", (long long)t->source.size_changes);
    if (t->source.reopened)
        printf("the source went away and came back %lld times\n", (long long)t->source.reopened);
}

/* ---- All of it ---- */

#define WORTH 0.9 /* of the arithmetic of whole windows: copies take some time too */

ew_err ew_run_video_slide(const struct ew_graph *g, int64_t window, int64_t hop,
                          const struct ew_plan_opts *o, struct ew_slide **out)
{
    const struct ew_value *x = g->n_inputs ? &g->values[g->inputs[0]] : NULL;
    *out = NULL;
    if (g->n_inputs != 1 || x->t.shape.rank != 5 || x->t.shape.dim[0] != 1)
        return EW_OK;
    const int64_t frames = x->t.shape.dim[x->channels_last ? 1 : 2];
    const int64_t apart = window ? window / frames : 1; /* frames that gather() takes */
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

static ew_err check(const struct ew_run_video *v, struct video *t)
{
    const struct ew_graph *g = v->net->graph;
    const struct ew_value *x = &g->values[g->inputs[0]];
    EW_CHECK(g->n_inputs == 1 && x->t.shape.rank == 5 && x->t.shape.dim[0] == 1, EW_ERR_USAGE,
             "%s: takes no clips, one at a time", v->name);
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

/* What becomes of frames, and of which size raw ones must be. */
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

static ew_err run_threads(struct video *t)
{
    pthread_t decoder, shower;
    t->start_ns = ew_clock_ns();
    if (t->v->seconds > 0)
        t->source.until_ns = t->start_ns + (int64_t)(t->v->seconds * 1e9);
    EW_CHECK(pthread_create(&shower, NULL, show_all, t) == 0, EW_ERR_IO, "no thread to show");
    ew_err e = EW_OK;
    const bool decodes = pthread_create(&decoder, NULL, decode_all, t) == 0;
    if (decodes)
        e = infer_all(t);
    else
        e = ew_fail(EW_ERR_IO, "no thread to decode");
    char why[512];
    snprintf(why, sizeof(why), "%s", e == EW_OK ? "" : ew_error_message());
    if (decodes)
        pthread_join(decoder, NULL);
    ew_queue_close(&t->done);
    pthread_join(shower, NULL);
    if (e != EW_OK)
        return ew_fail(e, "%s", why);
    if (t->write_err != EW_OK)
        return ew_fail(t->write_err, "%s", t->write_why);
    if (t->source_err != EW_OK && t->n_answers == 0)
        return ew_fail(t->source_err, "%s", t->source_why);
    if (t->source_err != EW_OK)
        EW_WARN("%s, after %lld frames", t->source_why, (long long)t->source.n);
    EW_CHECK(t->source.n > 0 || asked_to_stop, EW_ERR_FORMAT, "%s: has no frame", t->v->source);
    return EW_OK;
}

static ew_err run_and_print(struct video *t)
{
    if (t->v->json) {
        ew_json_init(&t->json, stdout);
        ew_json_object(&t->json, NULL);
        ew_json_str(&t->json, "name", t->v->name);
        ew_json_str(&t->json, "source", t->v->source);
        ew_json_array(&t->json, "results");
    }
    const ew_err e = run_threads(t);
    const double wall_s = fmax((double)(ew_clock_ns() - t->start_ns) * 1e-9, 1e-9);
    struct ew_bench_stats b = {0};
    if (t->n_answers)
        ew_bench_stats(t->ns, t->n_answers, &b);
    if (t->v->json) {
        ew_json_end(&t->json);
        json_summary(t, &b, wall_s);
        ew_json_end(&t->json);
        const ew_err written = ew_json_finish(&t->json);
        return e == EW_OK ? written : e;
    }
    if (e == EW_OK)
        print_summary(t, &b, wall_s);
    return e;
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

static ew_err open_page(struct video *t)
{
    const struct ew_run_video *v = t->v;
    t->page = (struct ew_video_page){.name = v->name,
                                     .source = v->source,
                                     .show = v->show,
                                     .budget_ms = v->budget_ms,
                                     .reconstructs = t->reconstructs};
    return v->live ? ew_video_page_open(&t->page, v->live) : EW_OK;
}

static ew_err run(struct video *t)
{
    const struct ew_run_video *v = t->v;
    EW_TRY(check(v, t));
    const struct ew_video_opts o = {
        .stride = 1, .h = t->side[0], .w = t->side[1], .full = v->annotate || v->sheet || v->live};
    EW_TRY(ew_video_source_open(v->source, &o, &t->source));
    say_frames(t);
    t->drops = t->source.live || v->fps > 0;
    memset(t->clip, 0, (size_t)(3 * t->frames * t->side[0] * t->side[1]));
    if (!v->slide)
        EW_TRY(ew_plan_run(v->p)); /* the first run is slow everywhere */
    EW_TRY(open_queues(t));
    EW_TRY(open_page(t));
    const struct sigaction a = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;
    asked_to_stop = 0;
    sigaction(SIGINT, &a, &before);
    const ew_err e = run_and_print(t);
    sigaction(SIGINT, &before, NULL);
    return e;
}

ew_err ew_run_video(const struct ew_run_video *v)
{
    struct video *t = calloc(1, sizeof(*t));
    EW_CHECK(t, EW_ERR_MEMORY, "no memory");
    t->v = v;
    const ew_err e = run(t);
    ew_video_source_close(&t->source);
    ew_image_input_free(t->images);
    for (int i = 0; i < SLOTS; i++)
        ew_video_frame_fini(&t->slots[i].frame);
    if (t->free.slots)
        ew_queue_fini(&t->free);
    if (t->decoded.slots)
        ew_queue_fini(&t->decoded);
    if (t->done.slots)
        ew_queue_fini(&t->done);
    ew_video_page_fini(&t->page);
    free(t->history);
    free(t->clip);
    free(t->ns);
    free(t);
    return e;
}
