/* SPDX-License-Identifier: Apache-2.0 */
/* The baseline of `bench --against`: search in a results database, table, gate. */
#include "cli/bench_against.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "report/text_table.h"
#include "store/store.h"

/* ---- Search ---- */

/* Options that change what is timed. */
static const char *const compared[] = {
    "input",  "classes",      "width",     "width-list", "batch",   "train",
    "device", "precision",    "fast",      "threads",    "streams", "beside",
    "qps",    "memory-limit", "reference", "plain",      "tune"};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *text_of(const struct ew_rows *rows, const char *column)
{
    const int i = ew_rows_find(rows, column);
    const char *text = i < 0 ? NULL : ew_rows_text(rows, i);
    return text ? text : "";
}

static double number_of(const struct ew_rows *rows, const char *column)
{
    const int i = ew_rows_find(rows, column);
    return i < 0 ? (double)NAN : ew_rows_num(rows, i);
}

/* Numbers are compared as such: "1" is "1.0".  A run without the option had its default. */
static bool same_option(const struct ew_field *f, const void *opts, const struct ew_rows *rows)
{
    char column[64], own[256];
    snprintf(column, sizeof(column), "%s", f->name);
    for (char *p = column; *p; p++)
        *p = *p == '-' ? '_' : *p;
    const char *stored = text_of(rows, column);
    if (f->type == EW_FIELD_BOOL)
        return *(const bool *)((const char *)opts + f->offset) == (strcmp(stored, "1") == 0);
    ew_field_print(f, opts, own, sizeof(own));
    if (!*stored && f->def)
        stored = f->def;
    char *end_a, *end_b;
    const double a = strtod(own, &end_a), b = strtod(stored, &end_b);
    if (!*end_a && !*end_b) /* both are numbers, an empty text counts as 0 */
        return !(a < b) && !(a > b);
    return strcmp(own, stored) == 0;
}

static bool is_baseline(const struct ew_cmd_call *c, const struct ew_rows *rows, const char *isa)
{
    if (strcmp(file_name(text_of(rows, "network")), file_name(c->args[0])) != 0 ||
        strcmp(text_of(rows, "machine_isa"), isa) != 0 || isnan(number_of(rows, "median_ms")))
        return false;
    for (size_t i = 0; i < EW_COUNT(compared); i++) {
        const struct ew_field *f = ew_field_find(c->cmd->opts, compared[i]);
        if (!same_option(f, c->opts, rows))
            return false;
    }
    return true;
}

static void take(const struct ew_rows *rows, struct ew_baseline *out)
{
    out->run = ew_rows_int(rows, ew_rows_find(rows, "id"));
    snprintf(out->started, sizeof(out->started), "%s", text_of(rows, "started"));
    snprintf(out->version, sizeof(out->version), "%s", text_of(rows, "machine_version"));
    snprintf(out->cpu, sizeof(out->cpu), "%s", text_of(rows, "machine_cpu"));
    out->median_ms = number_of(rows, "median_ms");
    out->min_ms = number_of(rows, "min_ms"); /* of a comparison; else see below */
    out->p99_ms = number_of(rows, "p99_ms");
    out->planned_bytes = number_of(rows, "planned_bytes");
}

static ew_err search(struct ew_store *s, struct ew_cmd_call *c, struct ew_baseline *out)
{
    struct ew_device_found device;
    struct ew_rows *rows;
    EW_TRY(ew_backend_probe(NULL, &device));
    EW_TRY(ew_store_results(s, "command = 'bench' and status = 'done' and quality = 'measured'",
                            "id desc", &rows));
    while (out->run == 0 && ew_rows_next(rows))
        if (is_baseline(c, rows, device.label))
            take(rows, out);
    EW_TRY(ew_rows_free(rows));
    if (!out->run)
        ew_cmd_hint(c, "the same command with --db %s instead of --against records one",
                    ew_store_path(s));
    EW_CHECK(out->run, EW_ERR_NOT_FOUND,
             "--against %s: no run of %s with these options and %s kernels", ew_store_path(s),
             file_name(c->args[0]), device.target);
    EW_TRY(ew_store_query(s, &rows, "SELECT lowest FROM metric WHERE run = ?1 AND name = ?2", "is",
                          out->run, "median_ms"));
    if (ew_rows_next(rows) && !isnan(ew_rows_num(rows, 0)))
        out->min_ms = ew_rows_num(rows, 0);
    return ew_rows_free(rows);
}

ew_err ew_baseline_find(struct ew_cmd_call *c, struct ew_baseline *out)
{
    const struct ew_bench_args *o = c->opts;
    struct ew_store *s;
    *out = (struct ew_baseline){0};
    EW_CHECK(o->against || o->max_slowdown <= 0, EW_ERR_USAGE, "--max-slowdown needs --against");
    if (!o->against)
        return EW_OK;
    EW_TRY(ew_store_open(o->against, &(struct ew_store_opts){.read_only = true}, &s));
    const ew_err e = search(s, c, out);
    ew_store_close(s);
    return e;
}

/* ---- Output ---- */

struct figure {
    const char *name, *key;
    double then, now;
    bool bytes;
};

#define FIGURES 4

static void figures(const struct ew_bench_shown *s, struct figure out[FIGURES])
{
    const struct ew_baseline *b = &s->baseline;
    const struct ew_bench_stats *t = &s->r.time;
    const double planned = (double)(s->r.plan.arena_bytes + s->r.plan.weight_bytes);
    out[0] = (struct figure){"time, median", "median_ms", b->median_ms, t->median_ms, false};
    out[1] = (struct figure){"      min", "min_ms", b->min_ms, t->min_ms, false};
    out[2] = (struct figure){"      p99", "p99_ms", b->p99_ms, t->p99_ms, false};
    out[3] = (struct figure){"memory, planned", "planned_bytes", b->planned_bytes, planned, true};
}

static void value_cell(struct ew_table *t, bool bytes, double v)
{
    char text[EW_TEXT_CHARS];
    if (bytes)
        ew_table_cell(t, "%s", ew_text_bytes((int64_t)v, text));
    else
        ew_table_cell(t, "%s ms", ew_text_ms(v, text));
}

ew_err ew_baseline_print(const struct ew_bench_shown *s)
{
    struct figure f[FIGURES];
    struct ew_table t;
    if (!s->baseline.run)
        return EW_OK;
    figures(s, f);
    printf("\nbaseline:  run %lld of %s, %s, edgewise %s on %s\n", (long long)s->baseline.run,
           s->o->against, s->baseline.started, s->baseline.version, s->baseline.cpu);
    ew_table_init(&t, "lrrr");
    static const char *const head[] = {" ", "baseline", "now", "change"};
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; i < FIGURES; i++) {
        if (!(f[i].then > 0)) /* not recorded */
            continue;
        ew_table_cell(&t, "%s", f[i].name);
        value_cell(&t, f[i].bytes, f[i].then);
        value_cell(&t, f[i].bytes, f[i].now);
        ew_table_cell(&t, "%+.1f %%", 100 * (f[i].now / f[i].then - 1));
    }
    return ew_table_print(&t, stdout);
}

void ew_baseline_json(struct ew_json *j, const struct ew_bench_shown *s)
{
    struct figure f[FIGURES];
    if (!s->baseline.run)
        return;
    figures(s, f);
    ew_json_object(j, "baseline");
    ew_json_str(j, "db", s->o->against);
    ew_json_int(j, "run", s->baseline.run);
    ew_json_str(j, "started", s->baseline.started);
    ew_json_str(j, "version", s->baseline.version);
    ew_json_str(j, "cpu", s->baseline.cpu);
    for (int i = 0; i < FIGURES; i++)
        ew_json_num(j, f[i].key, f[i].then);
    ew_json_end(j);
}

/* ---- Gate ---- */

ew_err ew_baseline_check(const struct ew_bench_shown *s)
{
    const double then = s->baseline.min_ms, now = s->r.time.min_ms, limit = s->o->max_slowdown;
    if (!s->baseline.run || limit <= 0)
        return EW_OK;
    EW_CHECK(then > 0, EW_ERR_NOT_FOUND, "--against %s: run %lld has no shortest time",
             s->o->against, (long long)s->baseline.run);
    EW_CHECK(
        now <= then * (1 + limit / 100), EW_ERR_LIMIT,
        "%s: its shortest run took %.1f %% longer than the baseline's, --max-slowdown is %g %%",
        s->name, 100 * (now / then - 1), limit);
    return EW_OK;
}
