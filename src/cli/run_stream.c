/* SPDX-License-Identifier: Apache-2.0 */
/* Many images through a network: each in its turn, or as a camera delivers them.
 *
 * Frame k of a camera is there at start + k / fps, as pixels.  Whoever is late finds the newest
 * one; those before it are lost.  A deadline is missed where a frame is lost, or where its classes
 * are there more than the budget after the frame. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/rootfs.h"
#include "bench/bench.h"
#include "cli/run_io.h"
#include "data/image_file.h"

#define CAMERA_IMAGES 64 /* as many different frames as a camera shows */

/* ---- Finding images ---- */

struct finding {
    struct ew_arena *a;
    const char **paths;
    int n, cap;
};

static ew_err add_path(struct finding *f, const char *path)
{
    EW_TRY(ew_grow((void **)&f->paths, &f->cap, f->n + 1, sizeof(*f->paths)));
    f->paths[f->n] = ew_arena_strdup(f->a, path);
    EW_CHECK(f->paths[f->n], EW_ERR_MEMORY, "no memory");
    f->n++;
    return EW_OK;
}

static bool is_image(const char *path)
{
    unsigned char head[8] = {0};
    return ew_image_is(head, ew_file_head(path, head, sizeof(head)));
}

static ew_err add_folder(struct finding *f, const char *folder)
{
    EW_CLEANUP(ew_root_close) struct ew_root root;
    const char *const *names = NULL;
    int n = 0;
    const int before = f->n;
    EW_TRY(ew_root_open(folder, &root));
    EW_TRY(ew_root_list(&root, "/", f->a, &names, &n));
    for (int i = 0; i < n; i++) {
        const char *path = ew_arena_printf(f->a, "%s/%s", folder, names[i]);
        EW_CHECK(path, EW_ERR_MEMORY, "no memory");
        if (is_image(path))
            EW_TRY(add_path(f, path));
    }
    EW_CHECK(f->n > before, EW_ERR_NOT_FOUND, "%s: has no PNG or JPEG image", folder);
    return EW_OK;
}

static ew_err add_stdin(struct finding *f)
{
    char *line = NULL;
    size_t size = 0;
    ew_err e = EW_OK;
    while (e == EW_OK && getline(&line, &size, stdin) >= 0) {
        line[strcspn(line, "\r\n")] = 0;
        if (*line)
            e = add_path(f, line);
    }
    free(line);
    return e;
}

static ew_err find(struct finding *f, const char *const *words, int n, bool always)
{
    struct stat st;
    bool several = always;
    for (int i = 0; i < n; i++)
        several |= strcmp(words[i], "-") == 0 || (stat(words[i], &st) == 0 && S_ISDIR(st.st_mode));
    for (int i = 0; several && i < n; i++) {
        const bool folder = stat(words[i], &st) == 0 && S_ISDIR(st.st_mode);
        EW_TRY(strcmp(words[i], "-") == 0 ? add_stdin(f)
               : folder                   ? add_folder(f, words[i])
                                          : add_path(f, words[i]));
    }
    EW_CHECK(!several || f->n, EW_ERR_USAGE, "there is no image to run");
    return EW_OK;
}

ew_err ew_run_frames_find(const char *const *words, int n, bool always, struct ew_arena *a,
                          struct ew_run_frames *out)
{
    struct finding f = {.a = a};
    const ew_err e = find(&f, words, n, always);
    const char **list = ew_arena_array(a, (size_t)f.n + 1, sizeof(*list));
    if (list && f.n)
        memcpy(list, f.paths, (size_t)f.n * sizeof(*list));
    *out = (struct ew_run_frames){.paths = list, .n = e == EW_OK ? f.n : 0};
    free(f.paths);
    EW_CHECK(list, EW_ERR_MEMORY, "no memory");
    return e;
}

ew_err ew_run_frames_of(const struct ew_run_inputs *in, struct ew_arena *a,
                        struct ew_run_frames *out)
{
    const char **list = ew_arena_array(a, (size_t)in->n + 1, sizeof(*list));
    EW_CHECK(list, EW_ERR_MEMORY, "no memory");
    for (int i = 0; i < in->n; i++)
        list[i] = in->list[i].path;
    *out = (struct ew_run_frames){.paths = list, .n = in->n};
    return EW_OK;
}

/* ---- Running ---- */

struct stream {
    const struct ew_run_stream *s;
    struct ew_tensor *to; /* the network's input */
    struct ew_image_input *images;
    struct ew_json json;
    int64_t *ns; /* from frame to classes */
    int64_t n, cap, late, lost;
};

static double ms(int64_t ns)
{
    return (double)ns * 1e-6;
}

static ew_err note(struct stream *t, int64_t ns)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 256;
        int64_t *more = realloc(t->ns, (size_t)t->cap * sizeof(*more));
        EW_CHECK(more, EW_ERR_MEMORY, "no memory for %lld times", (long long)t->cap);
        t->ns = more;
    }
    t->ns[t->n++] = ns;
    t->late += ms(ns) > t->s->budget_ms;
    return EW_OK;
}

static void show(struct stream *t, const char *path, int64_t read_ns, int64_t run_ns)
{
    const struct ew_run_show *how = &t->s->show;
    struct ew_run_class top[EW_RUN_TOP] = {{.index = -1}};
    const bool scores = ew_run_best(ew_plan_output(t->s->p, 0), top) > 0;
    const int64_t best = top[0].index;
    const double share = top[0].share;
    const char *label = scores && best < how->n_labels ? how->labels[best] : "";
    if (t->s->json) {
        ew_json_object(&t->json, NULL);
        ew_json_str(&t->json, "file", path);
        if (scores) {
            ew_json_int(&t->json, "class", best);
            ew_json_num(&t->json, "share", share);
            if (*label)
                ew_json_str(&t->json, "label", label);
        }
        ew_json_num(&t->json, "read_ms", ms(read_ns));
        ew_json_num(&t->json, "run_ms", ms(run_ns));
        ew_json_end(&t->json);
        return;
    }
    if (scores)
        printf("%s  class %lld  %.2f %%  %s%sread %.2f ms, run %.2f ms\n", path, (long long)best,
               100 * share, label, *label ? "  " : "", ms(read_ns), ms(run_ns));
    else
        printf("%s  read %.2f ms, run %.2f ms\n", path, ms(read_ns), ms(run_ns));
}

/* One after the other; reading the file counts. */
static ew_err run_list(struct stream *t)
{
    const struct ew_run_frames *f = &t->s->frames;
    for (int i = 0; i < f->n; i++) {
        const int64_t start = ew_clock_ns();
        EW_TRY(ew_image_input_read(t->images, f->paths[i], 0, t->to));
        const int64_t ready = ew_clock_ns();
        EW_TRY(ew_plan_run(t->s->p));
        const int64_t end = ew_clock_ns();
        EW_TRY(note(t, end - start));
        show(t, f->paths[i], ready - start, end - ready);
    }
    return EW_OK;
}

static void sleep_until(int64_t ns)
{
    const struct timespec at = {.tv_sec = (time_t)(ns / EW_NS_PER_S),
                                .tv_nsec = (long)(ns % EW_NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

static ew_err play(struct stream *t, const struct ew_sample *images, int n_images)
{
    const struct ew_run_stream *s = t->s;
    const double period = 1e9 / s->fps;
    const int64_t frames =
        s->seconds > 0 ? (int64_t)ceil(s->seconds * s->fps) : (int64_t)s->frames.n;
    EW_TRY(
        ew_image_input_put(t->images, &images[0], 0, t->to)); /* the first run is slow everywhere */
    EW_TRY(ew_plan_run(s->p));
    struct ew_progress bar;
    ew_progress_begin(&bar, stderr, "frames", frames);
    const int64_t start = ew_clock_ns();
    for (int64_t k = 0; k < frames;) {
        const int64_t there = start + (int64_t)((double)k * period);
        if (ew_clock_ns() < there)
            sleep_until(there);
        EW_TRY(ew_image_input_put(t->images, &images[k % n_images], 0, t->to));
        EW_TRY(ew_plan_run(s->p));
        const int64_t now = ew_clock_ns();
        EW_TRY(note(t, now - there));
        const int64_t newest = ew_min_i64((int64_t)((double)(now - start) / period), frames);
        t->lost += newest > k + 1 ? newest - k - 1 : 0;
        k = ew_max_i64(newest, k + 1);
        ew_progress_update(&bar, k);
    }
    ew_progress_end(&bar);
    return EW_OK;
}

static ew_err run_camera(struct stream *t)
{
    const int n = t->s->frames.n < CAMERA_IMAGES ? t->s->frames.n : CAMERA_IMAGES;
    const int channels = (int)ew_image_input_size(t->images)[2];
    struct ew_sample images[CAMERA_IMAGES];
    struct ew_arena a;
    ew_arena_init(&a);
    ew_err e = EW_OK;
    for (int i = 0; e == EW_OK && i < n; i++) {
        struct ew_tensor image;
        e = ew_image_read(t->s->frames.paths[i], channels, &a, &image);
        if (e == EW_OK)
            images[i] = ew_image_sample(&image);
    }
    if (e == EW_OK)
        e = play(t, images, n);
    ew_arena_fini(&a);
    return e;
}

/* ---- The sum of it ---- */

static void json_summary(struct stream *t, const struct ew_bench_stats *b)
{
    struct ew_json *j = &t->json;
    ew_json_int(j, "images", t->n);
    ew_json_int(j, "frames", t->n + t->lost);
    if (t->s->fps > 0)
        ew_json_num(j, "fps", t->s->fps);
    ew_json_num(j, "budget_ms", t->s->budget_ms);
    ew_json_int(j, "missed", t->late + t->lost);
    ew_json_int(j, "late", t->late);
    ew_json_int(j, "lost", t->lost);
    ew_json_num(j, "median_ms", b->median_ms);
    ew_json_num(j, "p99_ms", b->p99_ms);
    ew_json_num(j, "max_ms", b->max_ms);
}

static void print_summary(const struct stream *t, const struct ew_bench_stats *b)
{
    const int64_t frames = t->n + t->lost, missed = t->late + t->lost;
    printf("%lld images: median %.2f ms, p99 %.2f, max %.2f, %s\n", (long long)t->n, b->median_ms,
           b->p99_ms, b->max_ms, t->s->fps > 0 ? "from frame to classes" : "read and run");
    printf("deadlines of %.2f ms: %lld of %lld missed (%.1f %%)", t->s->budget_ms,
           (long long)missed, (long long)frames, 100.0 * (double)missed / (double)frames);
    if (t->s->fps > 0)
        printf(", at %g frames/s: %lld late, %lld lost", t->s->fps, (long long)t->late,
               (long long)t->lost);
    printf("\n");
}

static ew_err run_and_print(struct stream *t)
{
    if (t->s->json) {
        ew_json_init(&t->json, stdout);
        ew_json_object(&t->json, NULL);
        ew_json_str(&t->json, "name", t->s->name);
        ew_json_array(&t->json, "results");
    }
    const ew_err e = t->s->fps > 0 ? run_camera(t) : run_list(t);
    struct ew_bench_stats b;
    ew_bench_stats(t->ns, t->n, &b);
    if (t->s->json) {
        ew_json_end(&t->json);
        json_summary(t, &b);
        ew_json_end(&t->json);
        const ew_err written = ew_json_finish(&t->json);
        return e == EW_OK ? written : e;
    }
    if (e == EW_OK)
        print_summary(t, &b);
    return e;
}

ew_err ew_run_stream(const struct ew_run_stream *s)
{
    const struct ew_graph *g = s->net->graph;
    EW_CHECK(g->n_inputs == 1, EW_ERR_USAGE, "%s: has %d inputs, images are for one", s->name,
             g->n_inputs);
    const struct ew_value *v = &g->values[g->inputs[0]];
    EW_CHECK(v->t.shape.rank < 4 || v->t.shape.dim[0] == 1, EW_ERR_USAGE,
             "%s: takes %lld images at a time, a stream has one", s->name,
             (long long)v->t.shape.dim[0]);
    char text[EW_PREPROCESS_CHARS];
    struct stream t = {.s = s, .to = ew_plan_input(s->p, 0)};
    EW_TRY(ew_image_input_new(v, &s->net->card.prep, g->name, &t.images));
    EW_INFO("images: %s",
            ew_preprocess_text(ew_image_input_prep(t.images), ew_image_input_size(t.images), text));
    const ew_err e = run_and_print(&t);
    ew_image_input_free(t.images);
    free(t.ns);
    return e;
}
