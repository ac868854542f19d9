/* SPDX-License-Identifier: Apache-2.0 */
/* `edgewise run` with many images: finds the files and prints the results.  They run in
 * measure/image_stream.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/rootfs.h"
#include "cli/run_io.h"
#include "data/image_file.h"
#include "measure/image_stream.h"
#include "measure/top_classes.h"
#include "record/record.h"

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
    const size_t length = strlen(folder); /* not empty: the folder exists */
    EW_TRY(ew_root_open(folder, &root));
    EW_TRY(ew_root_list(&root, "/", f->a, &names, &n));
    for (int i = 0; i < n; i++) {
        if (names[i][0] == '.') /* hidden, such as a Mac's ._photo.jpg */
            continue;
        const char *path =
            ew_arena_printf(f->a, "%s%s%s", folder, folder[length - 1] == '/' ? "" : "/", names[i]);
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

/* ---- Showing ---- */

struct shown {
    const struct ew_run_stream *s;
    struct ew_json json;
    bool begun; /* the JSON object is open; not before the network is known to take images */
    struct ew_file_out csv;
    ew_err csv_err;
    struct ew_progress bar; /* shown if the lines of the images go to the CSV file only */
    int done;
    int width;   /* of the column of file names */
    int64_t bad; /* files that cannot be read */
};

#define MOST_NAME 60 /* longer names are not padded to */

static void begin_json(struct shown *t)
{
    if (t->begun)
        return;
    t->begun = true;
    ew_json_init(&t->json, stdout);
    ew_json_object(&t->json, NULL);
    ew_json_str(&t->json, "name", t->s->name);
    ew_json_array(&t->json, "results");
}

static double ms(int64_t ns)
{
    return (double)ns / 1e6;
}

static void put_csv(struct shown *t, const char *path, int64_t read_ns, int64_t run_ns)
{
    ew_csv_cell(t->csv.f, path);
    if (t->csv_err == EW_OK)
        t->csv_err = ew_run_csv_top(t->csv.f, ew_plan_output(t->s->p, 0), &t->s->show);
    fprintf(t->csv.f, ",%.3f,%.3f\n", ms(read_ns), ms(run_ns));
    ew_progress_update(&t->bar, ++t->done);
}

static void show(void *ctx, const char *path, int64_t read_ns, int64_t run_ns)
{
    struct shown *t = ctx;
    if (t->s->csv)
        put_csv(t, path, read_ns, run_ns);
    if (t->s->csv && !t->s->json)
        return;
    const struct ew_run_show *how = &t->s->show;
    struct ew_top_class top = {.index = -1};
    const bool scores = ew_top_classes(ew_plan_output(t->s->p, 0), 1, &top) > 0;
    const int64_t best = top.index;
    const double share = top.share;
    const char *label = scores && best < how->n_labels ? how->labels[best] : "";
    if (t->s->json) {
        begin_json(t);
        ew_json_object(&t->json, NULL);
        ew_json_str(&t->json, "file", path);
        if (scores) {
            ew_json_int(&t->json, "class", best);
            ew_json_num(&t->json, "probability", share);
            if (*label)
                ew_json_str(&t->json, "label", label);
            ew_run_top_json(&t->json, ew_plan_output(t->s->p, 0), how);
        }
        ew_json_num(&t->json, "read_ms", ms(read_ns));
        ew_json_num(&t->json, "run_ms", ms(run_ns));
        ew_json_end(&t->json);
        return;
    }
    if (scores)
        printf("%-*s  class %4lld  %6.2f %%  read %6.2f ms  run %6.2f ms%s%s\n", t->width, path,
               (long long)best, 100 * share, ms(read_ns), ms(run_ns), *label ? "  " : "", label);
    else
        printf("%-*s  read %6.2f ms  run %6.2f ms\n", t->width, path, ms(read_ns), ms(run_ns));
}

static void json_summary(struct shown *t, const struct ew_image_stream_result *r)
{
    struct ew_json *j = &t->json;
    ew_json_int(j, "images", r->n);
    ew_json_int(j, "frames", r->n + r->lost);
    ew_json_int(j, "unreadable", r->bad);
    if (t->s->fps > 0)
        ew_json_num(j, "fps", t->s->fps);
    if (t->s->budget_ms > 0) {
        ew_json_num(j, "budget_ms", t->s->budget_ms);
        ew_json_int(j, "missed", r->late + r->lost);
        ew_json_int(j, "late", r->late);
        ew_json_int(j, "lost", r->lost);
    }
    ew_json_num(j, "median_ms", r->time.median_ms);
    ew_json_num(j, "p99_ms", r->time.p99_ms);
    ew_json_num(j, "max_ms", r->time.max_ms);
}

static void print_summary(const struct shown *t, const struct ew_image_stream_result *r)
{
    const int64_t frames = r->n + r->lost, missed = r->late + r->lost;
    printf("%lld image%s: median %.2f ms, p99 %.2f, max %.2f, %s\n", (long long)r->n,
           r->n == 1 ? "" : "s", r->time.median_ms, r->time.p99_ms, r->time.max_ms,
           t->s->fps > 0 ? "from frame to classes" : "read and run");
    if (t->s->budget_ms <= 0)
        return;
    printf("deadlines of %.2f ms: %lld of %lld missed (%.1f %%)", t->s->budget_ms,
           (long long)missed, (long long)frames, 100.0 * (double)missed / (double)frames);
    if (t->s->fps > 0)
        printf(", at %g frames/s: %lld late, %lld lost", t->s->fps, (long long)r->late,
               (long long)r->lost);
    printf("\n");
}

static ew_err run_stream(struct shown *t)
{
    const struct ew_run_stream *s = t->s;
    struct ew_image_stream_result r;
    const struct ew_image_stream stream = {.name = s->name,
                                           .net = s->net,
                                           .p = s->p,
                                           .paths = s->frames.paths,
                                           .n = s->frames.n,
                                           .fps = s->fps,
                                           .seconds = s->seconds,
                                           .budget_ms = s->budget_ms,
                                           .show = show,
                                           .ctx = t,
                                           .talk = stderr};
    const ew_err e = ew_image_stream_run(&stream, &r);
    if (s->csv)
        ew_progress_end(&t->bar);
    t->bad = r.bad;
    if (s->json && (t->begun || e == EW_OK)) {
        begin_json(t);
        ew_json_end(&t->json);
        json_summary(t, &r);
        ew_json_end(&t->json);
        const ew_err written = ew_json_finish(&t->json);
        return e == EW_OK ? written : e;
    }
    if (e == EW_OK && t->csv_err == EW_OK)
        print_summary(t, &r);
    return e;
}

static ew_err run_to_csv(struct shown *t)
{
    const struct ew_run_stream *s = t->s;
    EW_TRY(ew_file_out_open(s->csv, &t->csv));
    ew_run_csv_head(t->csv.f, &s->show);
    ew_progress_begin(&t->bar, stderr, "run", s->frames.n);
    const ew_err e = run_stream(t);
    if (e != EW_OK || t->csv_err != EW_OK) {
        ew_file_out_abort(&t->csv);
        return e ? e : t->csv_err;
    }
    EW_TRY(ew_file_out_commit(&t->csv));
    EW_INFO("%s: written", s->csv);
    return EW_OK;
}

ew_err ew_run_stream(const struct ew_run_stream *s)
{
    struct shown t = {.s = s};
    for (int i = 0; i < s->frames.n; i++) {
        const int width = (int)strlen(s->frames.paths[i]);
        t.width = width <= MOST_NAME && width > t.width ? width : t.width;
    }
    EW_TRY(s->csv ? run_to_csv(&t) : run_stream(&t));
    EW_CHECK(t.bad == 0, EW_ERR_FORMAT, "%lld of %d images cannot be read", (long long)t.bad,
             s->frames.n);
    return EW_OK;
}
