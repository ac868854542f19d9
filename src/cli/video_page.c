/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON file for video on the live page. */
#include "cli/video_page.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "report/html.h"
#include "report/serve/serve.h"

#define EVERY_NS (EW_NS_PER_S / 4)
#define WIDEST   480 /* largest width of the picture in pixels */

ew_err ew_video_page_open(struct ew_video_page *p, const char *db)
{
    EW_CHECK(asprintf(&p->path, "%s" EW_SERVE_VIDEO, db) >= 0, EW_ERR_MEMORY, "no memory");
    p->start_ns = ew_clock_ns();
    return EW_OK;
}

void ew_video_page_prediction(struct ew_video_page *p, const struct ew_video_prediction *a)
{
    p->predictions[p->n++ % EW_VIDEO_PAGE_PREDICTIONS] = *a;
}

/* ---- The picture ---- */

/* Nearest-neighbour scaling to at most WIDEST pixels; `out` is released with free(). */
static ew_err shrink(const struct ew_canvas *from, struct ew_canvas *out)
{
    const int64_t w = ew_min_i64(from->w, WIDEST);
    const int64_t h = ew_max_i64(from->h * w / ew_max_i64(from->w, 1), 1);
    EW_TRY(ew_canvas_new(w, h, 0, out));
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            memcpy(out->rgb + 3 * (y * w + x),
                   from->rgb + 3 * (y * from->h / h * from->w + x * from->w / w), 3);
    return EW_OK;
}

static ew_err picture_text(const struct ew_canvas *frame, char **out)
{
    EW_CLEANUP(ew_free_ptr) char *png = NULL;
    size_t size = 0, text_size = 0;
    struct ew_canvas c = {0};
    EW_TRY(shrink(frame, &c));
    FILE *f = open_memstream(&png, &size);
    ew_err e = f ? ew_image_put_png(f, "a frame", c.rgb, (const int64_t[]){c.h, c.w, 3})
                 : ew_fail(EW_ERR_MEMORY, "no memory for a frame");
    free(c.rgb);
    if (f && !ew_memstream_close(f, &png) && e == EW_OK)
        e = ew_fail(EW_ERR_MEMORY, "no memory for a frame");
    EW_TRY(e);
    f = open_memstream(out, &text_size);
    EW_CHECK(f, EW_ERR_MEMORY, "no memory for a frame");
    fputs("data:image/png;base64,", f);
    ew_html_base64(f, png, size);
    EW_CHECK(ew_memstream_close(f, out), EW_ERR_MEMORY, "no memory for a frame");
    return EW_OK;
}

/* ---- The rest ---- */

static void put_label(struct ew_json *j, const struct ew_run_show *how, int64_t i)
{
    char number[32];
    snprintf(number, sizeof(number), "class %lld", (long long)i);
    ew_json_str(j, "label", i < how->n_labels ? how->labels[i] : number);
}

static void put_prediction(struct ew_json *j, const struct ew_video_page *p,
                           const struct ew_video_prediction *a)
{
    ew_json_object(j, NULL);
    ew_json_int(j, "frame", a->frame);
    ew_json_num(j, "time_s", a->time_s);
    ew_json_num(j, "latency_ms", a->latency_ms);
    if (p->reconstructs)
        ew_json_num(j, "error", a->error);
    ew_json_array(j, "top");
    for (int i = 0; i < a->n_top; i++) {
        ew_json_object(j, NULL);
        put_label(j, &p->show, a->top[i].index);
        ew_json_num(j, "probability", a->top[i].share);
        ew_json_end(j);
    }
    ew_json_end(j);
    ew_json_end(j);
}

static void put_counts(struct ew_json *j, const struct ew_video_page *p,
                       const struct ew_video_counts *c)
{
    const double wall_ns = (double)ew_max_i64(ew_clock_ns() - p->start_ns, 1);
    int64_t ns[EW_VIDEO_PAGE_PREDICTIONS];
    const int64_t n = ew_min_i64(p->n, EW_VIDEO_PAGE_PREDICTIONS);
    struct ew_bench_stats b = {0};
    for (int64_t i = 0; i < n; i++)
        ns[i] = (int64_t)(1e6 * p->predictions[i].latency_ms);
    if (n)
        ew_bench_stats(ns, n, &b);
    ew_json_int(j, "frames", c->frames);
    ew_json_int(j, "dropped", c->dropped);
    ew_json_int(j, "answers", c->predictions);
    ew_json_int(j, "late", c->late);
    ew_json_num(j, "budget_ms", p->budget_ms);
    ew_json_num(j, "wall_s", wall_ns * 1e-9);
    ew_json_num(j, "decode_share", (double)c->decode_ns / wall_ns);
    ew_json_num(j, "network_share", (double)c->run_ns / wall_ns);
    if (n) {
        ew_json_num(j, "median_ms", b.median_ms);
        ew_json_num(j, "p99_ms", b.p99_ms);
    }
}

static void put_all(struct ew_json *j, const struct ew_video_page *p,
                    const struct ew_video_counts *c, int64_t number)
{
    ew_json_object(j, NULL);
    ew_json_int(j, "version", EW_VIDEO_PAGE_VERSION);
    ew_json_str(j, "network", p->name);
    ew_json_str(j, "source", p->source);
    ew_json_bool(j, "ended", number < 0);
    if (number >= 0)
        ew_json_int(j, "frame", number);
    put_counts(j, p, c);
    ew_json_array(j, "answers_over_time");
    for (int64_t i = ew_max_i64(p->n - EW_VIDEO_PAGE_PREDICTIONS, 0); i < p->n; i++)
        put_prediction(j, p, &p->predictions[i % EW_VIDEO_PAGE_PREDICTIONS]);
    ew_json_end(j);
}

static ew_err write_file(struct ew_video_page *p, const struct ew_video_counts *c, int64_t number,
                         const char *picture)
{
    struct ew_json j;
    struct ew_file_out o;
    EW_TRY(ew_file_out_open(p->path, &o));
    ew_json_init(&j, o.f);
    j.compact = true;
    put_all(&j, p, c, number);
    if (picture)
        ew_json_str(&j, "picture", picture);
    ew_json_end(&j);
    const ew_err e = ew_json_finish(&j);
    p->written_ns = ew_clock_ns();
    if (e == EW_OK)
        return ew_file_out_commit(&o);
    ew_file_out_abort(&o);
    return e;
}

ew_err ew_video_page_frame(struct ew_video_page *p, const struct ew_canvas *frame, int64_t number,
                           const struct ew_video_counts *c)
{
    if (p->written_ns && ew_clock_ns() - p->written_ns < EVERY_NS)
        return EW_OK;
    free(p->picture);
    p->picture = NULL;
    EW_TRY(picture_text(frame, &p->picture));
    return write_file(p, c, number, p->picture);
}

ew_err ew_video_page_end(struct ew_video_page *p, const struct ew_video_counts *c)
{
    return write_file(p, c, -1, p->picture);
}

void ew_video_page_fini(struct ew_video_page *p)
{
    free(p->path);
    free(p->picture);
}
