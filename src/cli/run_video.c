/* SPDX-License-Identifier: Apache-2.0 */
/* `edgewise run` with video: shows predictions as lines or JSON, in an annotated clip, a contact
 * sheet and on the live page, and a summary.  It runs in measure/video_stream.h. */
#include "cli/run_video.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/canvas.h"
#include "cli/prediction_sheet.h"
#include "cli/video_page.h"
#include "data/clip_writer.h"
#include "model/loss_table.h"

struct shown {
    const struct ew_run_video *v;
    bool reconstructs;
    struct ew_json json;
    bool begun;                /* the JSON object is open; not before the source is */
    struct ew_video_step last; /* last prediction, without its frame; `answered`: there is one */
    struct ew_video_counts counts;
    struct ew_clip_writer *writer;
    struct ew_prediction_sheet sheet;
    struct ew_video_page page;
    ew_err write_err;
    char write_why[512];
};

static volatile int asked_to_stop;

static void on_signal(int signal)
{
    asked_to_stop = signal;
}

/* ---- Predictions ---- */

/* Label of the top class; "" without one. */
static const char *label_of(const struct shown *t, const struct ew_video_step *s)
{
    const bool named = s->n_top && s->top[0].index < t->v->show.n_labels;
    return named ? t->v->show.labels[s->top[0].index] : "";
}

static void json_answer(struct shown *t, const struct ew_video_step *s)
{
    struct ew_json *j = &t->json;
    ew_json_object(j, NULL);
    ew_json_int(j, "frame", s->number);
    ew_json_num(j, "time_s", s->time_s);
    if (t->reconstructs)
        ew_json_num(j, "error", s->error);
    if (s->n_top) {
        ew_json_int(j, "class", s->top[0].index);
        ew_json_num(j, "probability", s->top[0].share);
        if (*label_of(t, s))
            ew_json_str(j, "label", label_of(t, s));
    }
    ew_json_num(j, "latency_ms", (double)s->late_ns * 1e-6);
    ew_json_end(j);
}

static void show_answer(struct shown *t, const struct ew_video_step *s)
{
    const char *label = label_of(t, s);
    if (t->v->json) {
        json_answer(t, s);
        return;
    }
    printf("%8.2f s  frame %5lld  ", s->time_s, (long long)s->number);
    if (t->reconstructs)
        printf("error %.5f  ", s->error);
    if (s->n_top)
        printf("class %lld  %.2f %%  %s%s", (long long)s->top[0].index, 100 * s->top[0].share,
               label, *label ? "  " : "");
    printf("%.2f ms\n", (double)s->late_ns * 1e-6);
    fflush(stdout);
}

static void answer_text(const struct shown *t, const struct ew_video_step *a, char *out,
                        size_t size)
{
    if (t->reconstructs)
        snprintf(out, size, "error %.4f", a->error);
    else if (*label_of(t, a))
        snprintf(out, size, "%s %.1f%%", label_of(t, a), 100 * a->top[0].share);
    else
        snprintf(out, size, "class %lld %.1f%%", (long long)a->top[0].index, 100 * a->top[0].share);
}

static ew_err add_to_sheet(struct shown *t, const struct ew_video_step *s)
{
    const struct ew_video_frame *f = &s->frame;
    const struct ew_canvas c = {.w = f->full_w, .h = f->full_h, .rgb = f->full.at};
    char when[64], what[128];
    snprintf(when, sizeof(when), "frame %lld", (long long)s->number);
    answer_text(t, s, what, sizeof(what));
    return ew_prediction_sheet_add(&t->sheet, &c, (const char *const[]){what, when});
}

/* Draws the last prediction along the lower edge of the frame: label, score, and a bar of the
 * score. */
static void draw_answer(const struct shown *t, struct ew_canvas *c)
{
    static const uint8_t dark[3] = {20, 20, 20}, light[3] = {240, 240, 240}, bar[3] = {40, 140, 60};
    const int64_t dot = ew_max_i64(1, c->h / 160), line = ew_canvas_text_height(dot) + 4 * dot;
    const struct ew_video_step *a = &t->last;
    char text[128];
    answer_text(t, a, text, sizeof(text));
    const double share = a->n_top ? fmin(fmax(a->top[0].share, 0), 1) : 0;
    ew_canvas_box(c, (struct ew_rect){0, c->h - line, c->w, line}, dark);
    ew_canvas_box(c, (struct ew_rect){0, c->h - line, (int64_t)(share * (double)c->w), line}, bar);
    ew_canvas_text(c, (const int64_t[]){2 * dot, c->h - line + 2 * dot}, dot, text, light);
}

static ew_err annotate(struct shown *t, struct ew_video_step *s)
{
    struct ew_video_frame *f = &s->frame;
    struct ew_canvas c = {.w = f->full_w, .h = f->full_h, .rgb = f->full.at};
    if (!t->writer)
        EW_TRY(ew_clip_writer_open(t->v->annotate, f->full_h, f->full_w, &t->writer));
    if (t->last.answered)
        draw_answer(t, &c);
    return ew_clip_writer_put(t->writer, f->full.at, (const int64_t[]){f->full_h, f->full_w},
                              (int64_t)(1e6 * s->time_s));
}

static ew_err show_on_page(struct shown *t, const struct ew_video_step *s)
{
    const struct ew_canvas c = {
        .w = s->frame.full_w, .h = s->frame.full_h, .rgb = s->frame.full.at};
    if (s->answered) {
        struct ew_video_prediction a = {.frame = s->number,
                                        .time_s = s->time_s,
                                        .latency_ms = (double)s->late_ns * 1e-6,
                                        .error = s->error,
                                        .n_top = s->n_top};
        memcpy(a.top, s->top, sizeof(a.top));
        ew_video_page_prediction(&t->page, &a);
    }
    return ew_video_page_frame(&t->page, &c, s->number, &s->so_far);
}

/* Keeps the first write error for the end; classification continues. */
static void keep_failure(struct shown *t, ew_err e)
{
    if (e == EW_OK || t->write_err != EW_OK)
        return;
    t->write_err = e;
    snprintf(t->write_why, sizeof(t->write_why), "%s", ew_error_message());
}

static void begin_json(struct shown *t)
{
    if (t->begun || !t->v->json)
        return;
    t->begun = true;
    ew_json_init(&t->json, stdout);
    ew_json_object(&t->json, NULL);
    ew_json_str(&t->json, "name", t->v->stream.name);
    ew_json_str(&t->json, "source", t->v->stream.source);
    ew_json_array(&t->json, "results");
}

static void show_step(void *ctx, struct ew_video_step *s)
{
    struct shown *t = ctx;
    begin_json(t);
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
    t->counts = s->so_far;
}

static void close_files(struct shown *t)
{
    if (t->v->live && t->counts.frames && t->write_err == EW_OK)
        keep_failure(t, ew_video_page_end(&t->page, &t->counts));
    keep_failure(t, ew_clip_writer_close(t->writer));
    keep_failure(t, ew_prediction_sheet_close(&t->sheet, t->v->sheet));
}

/* ---- The sum of it ---- */

static void json_summary(struct shown *t, const struct ew_video_stream_result *r)
{
    struct ew_json *j = &t->json;
    ew_json_int(j, "frames", r->counts.frames);
    ew_json_int(j, "dropped", r->counts.dropped);
    ew_json_int(j, "window", r->window);
    ew_json_int(j, "hop", r->hop);
    ew_json_int(j, "answers", r->counts.predictions);
    ew_json_num(j, "budget_ms", t->v->stream.budget_ms);
    ew_json_int(j, "late", r->counts.late);
    ew_json_num(j, "median_ms", r->time.median_ms);
    ew_json_num(j, "p99_ms", r->time.p99_ms);
    ew_json_num(j, "max_ms", r->time.max_ms);
    ew_json_num(j, "wall_s", r->wall_s);
    ew_json_num(j, "decode_share", (double)r->counts.decode_ns * 1e-9 / r->wall_s);
    ew_json_num(j, "network_share", (double)r->counts.run_ns * 1e-9 / r->wall_s);
    if (t->v->stream.slide)
        ew_json_num(j, "computed_share", ew_slide_share(t->v->stream.slide));
    ew_json_int(j, "size_changes", r->size_changes);
    ew_json_int(j, "reopened", r->reopened);
    if (*r->source_error)
        ew_json_str(j, "source_error", r->source_error);
}

static void print_summary(const struct shown *t, const struct ew_video_stream_result *r)
{
    printf("%lld frames, %lld dropped; %lld answers from %lld frames each, every %lld\n",
           (long long)r->counts.frames, (long long)r->counts.dropped,
           (long long)r->counts.predictions, (long long)r->window, (long long)r->hop);
    if (r->counts.predictions)
        printf("latency: p50 %.2f ms, p99 %.2f, max %.2f, from a window's last frame to its "
               "answer\n",
               r->time.median_ms, r->time.p99_ms, r->time.max_ms);
    printf("time: %.2f s, %.1f frames/s; %s %.1f %% of it, network %.1f %%\n", r->wall_s,
           (double)r->counts.frames / r->wall_s,
           strcmp(t->v->stream.source, "-") != 0 ? "decoding (its own process)" : "reading",
           100 * (double)r->counts.decode_ns * 1e-9 / r->wall_s,
           100 * (double)r->counts.run_ns * 1e-9 / r->wall_s);
    if (t->v->stream.slide)
        printf("windows overlap: %.0f %% of the arithmetic is computed, the rest is reused\n",
               100 * ew_slide_share(t->v->stream.slide));
    printf("deadlines of %.2f ms: %lld of %lld missed\n", t->v->stream.budget_ms,
           (long long)r->counts.late, (long long)r->counts.predictions);
    if (r->size_changes)
        printf("the frames' size changed %lld times\n", (long long)r->size_changes);
    if (r->reopened)
        printf("the source went away and came back %lld times\n", (long long)r->reopened);
}

/* ---- All of it ---- */

static ew_err run_and_print(struct shown *t)
{
    struct ew_video_stream s = t->v->stream;
    struct ew_video_stream_result r;
    s.full = t->v->annotate || t->v->sheet || t->v->live;
    s.show = show_step;
    s.ctx = t;
    s.stop = &asked_to_stop;
    ew_err e = ew_video_stream_run(&s, &r);
    char why[512];
    snprintf(why, sizeof(why), "%s", e == EW_OK ? "" : ew_error_message());
    close_files(t);
    if (e != EW_OK)
        e = ew_fail(e, "%s", why);
    else if (t->write_err != EW_OK)
        e = ew_fail(t->write_err, "%s", t->write_why);
    if (e == EW_OK)
        begin_json(t);
    if (t->begun) {
        ew_json_end(&t->json);
        json_summary(t, &r);
        ew_json_end(&t->json);
        const ew_err written = ew_json_finish(&t->json);
        return e == EW_OK ? written : e;
    }
    if (e == EW_OK)
        print_summary(t, &r);
    return e;
}

static ew_err open_page(struct shown *t)
{
    const struct ew_run_video *v = t->v;
    t->page = (struct ew_video_page){.name = v->stream.name,
                                     .source = v->stream.source,
                                     .show = v->show,
                                     .budget_ms = v->stream.budget_ms,
                                     .reconstructs = t->reconstructs};
    return v->live ? ew_video_page_open(&t->page, v->live) : EW_OK;
}

ew_err ew_run_video(const struct ew_run_video *v)
{
    struct shown t = {.v = v, .reconstructs = ew_net_reconstructs(v->stream.net->graph)};
    ew_err e = open_page(&t);
    if (e == EW_OK) {
        const struct sigaction a = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
        struct sigaction before;
        asked_to_stop = 0;
        sigaction(SIGINT, &a, &before);
        e = run_and_print(&t);
        sigaction(SIGINT, &before, NULL);
    }
    ew_video_page_fini(&t.page);
    return e;
}
