/* SPDX-License-Identifier: Apache-2.0 */
/* The state of studies and runs as JSON for the live page, and as Prometheus text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/process.h"
#include "report/serve/routes.h"
#include "store/store.h"

#define MOST_LINES 200 /* of the log */

/* ---- JSON ---- */

static ew_err each(struct ew_store *s, const char *sql, enum ew_record kind, struct ew_json *j,
                   void (*more)(struct ew_json *j, const void *row))
{
    struct ew_rows *rows;
    struct ew_arena a;
    union {
        struct ew_study_row study;
        struct ew_epoch_row epoch;
    } row;
    EW_TRY(ew_store_query(s, &rows, sql, ""));
    ew_arena_init(&a);
    ew_err e = EW_OK;
    while (e == EW_OK && ew_rows_next(rows)) {
        ew_record_clear(kind, &row);
        e = ew_rows_read(rows, kind, &a, &row);
        ew_json_object(j, NULL);
        ew_record_json(j, kind, &row);
        if (more)
            more(j, &row);
        ew_json_end(j);
        ew_arena_reset(&a);
    }
    ew_arena_fini(&a);
    const ew_err end = ew_rows_free(rows);
    return e == EW_OK ? end : e;
}

static void add_alive(struct ew_json *j, const void *row)
{
    const struct ew_study_row *s = row;
    ew_json_bool(j, "alive", s->stamp && s->pid > 0 && ew_process_alive((int)s->pid, s->stamp));
}

/* Rows of any query as an array of objects; `inside` adds to each, by its column "id". */
static ew_err array(struct ew_store *s, const char *key, const char *sql, struct ew_json *j,
                    ew_err (*inside)(struct ew_store *s, int64_t id, struct ew_json *j))
{
    struct ew_rows *rows;
    EW_TRY(ew_store_query(s, &rows, sql, ""));
    const int id = ew_rows_find(rows, "id");
    ew_err e = EW_OK;
    ew_json_array(j, key);
    while (e == EW_OK && ew_rows_next(rows)) {
        ew_json_object(j, NULL);
        for (int i = 0; i < ew_rows_columns(rows); i++)
            ew_rows_json(j, rows, i);
        if (inside)
            e = inside(s, ew_rows_int(rows, id), j);
        ew_json_end(j);
    }
    ew_json_end(j);
    const ew_err end = ew_rows_free(rows);
    return e == EW_OK ? end : e;
}

/* A run whose process is gone stays "running" until the store is next written to. */
static ew_err run_alive(struct ew_store *s, int64_t id, struct ew_json *j)
{
    struct ew_rows *rows;
    EW_TRY(ew_store_query(s, &rows, "SELECT pid, stamp FROM run WHERE id = ?1", "i", id));
    if (ew_rows_next(rows)) {
        const char *stamp = ew_rows_text(rows, 1);
        const int64_t pid = ew_rows_int(rows, 0);
        ew_json_bool(j, "alive", stamp && pid > 0 && ew_process_alive((int)pid, stamp));
    }
    return ew_rows_free(rows);
}

static ew_err run_epochs(struct ew_store *s, int64_t id, struct ew_json *j)
{
    char sql[160];
    EW_TRY(run_alive(s, id, j));
    snprintf(sql, sizeof(sql), "SELECT * FROM epoch WHERE run = %lld ORDER BY epoch LIMIT 2000",
             (long long)id);
    ew_json_array(j, "epochs");
    const ew_err e = each(s, sql, EW_RECORD_EPOCH, j, NULL);
    ew_json_end(j);
    return e;
}

static ew_err write_state(struct ew_store *s, struct ew_json *j)
{
    char log[256], now[EW_RUN_TIME_CHARS];
    ew_run_time_text(now);
    ew_json_object(j, NULL);
    ew_json_str(j, "now", now);
    ew_json_array(j, "studies");
    EW_TRY(each(s, "SELECT * FROM study ORDER BY updated DESC LIMIT 20", EW_RECORD_STUDY, j,
                add_alive));
    ew_json_end(j);
    EW_TRY(
        array(s, "running",
              "SELECT run.id, run.uid, run.study, run.label, run.started, run.quality, run.status, "
              "run.wall_s, job.command, job.network, job.dataset, job.options, machine.unit AS "
              "machine FROM run LEFT JOIN job ON job.id = run.job LEFT JOIN machine ON machine.id "
              "= run.machine WHERE run.status = 'running' OR run.id = (SELECT max(run) FROM epoch) "
              "ORDER BY run.id DESC LIMIT 16",
              j, run_epochs));
    EW_TRY(array(s, "counts",
                 "SELECT status, count(*) AS n FROM run GROUP BY status ORDER BY status", j, NULL));
    snprintf(log, sizeof(log),
             "SELECT run.id, run.started, run.study, run.label, run.status, run.reason, run.noise, "
             "run.wall_s, job.network, machine.unit AS machine FROM run LEFT JOIN job ON job.id = "
             "run.job LEFT JOIN machine ON machine.id = run.machine ORDER BY run.id DESC LIMIT %d",
             MOST_LINES);
    EW_TRY(array(s, "log", log, j, NULL));
    ew_json_end(j);
    return EW_OK;
}

static ew_err with_store(const char *db, struct ew_store **out)
{
    return ew_store_open(db, &(struct ew_store_opts){.read_only = true}, out);
}

ew_err ew_route_state(const char *db, FILE *out)
{
    struct ew_store *s;
    struct ew_json j;
    char *text = NULL;
    EW_TRY(with_store(db, &s));
    /* In memory first: what fails halfway is not sent. */
    ew_json_init_text(&j, &text);
    j.compact = true;
    ew_err e = write_state(s, &j);
    while (j.depth > 0)
        ew_json_end(&j);
    const ew_err end = ew_json_finish(&j);
    e = e == EW_OK ? end : e;
    if (e == EW_OK)
        fputs(text, out);
    free(text);
    ew_store_close(s);
    return e;
}

/* ---- Prometheus ---- */

static void label(FILE *out, const char *text)
{
    for (const char *p = text ? text : ""; *p; p++) {
        if (*p == '\\' || *p == '"')
            putc('\\', out);
        if (*p == '\n')
            fputs("\\n", out);
        else
            putc(*p, out);
    }
}

static void number(FILE *out, double v)
{
    char text[EW_NUM_CHARS];
    ew_num_text(v, text);
    fprintf(out, " %s\n", isnan(v) ? "NaN" : isinf(v) ? (v < 0 ? "-Inf" : "+Inf") : text);
}

struct gauge {
    const char *name, *help;
    const char *sql; /* selects a number, then texts that become labels with the columns' names */
};

static ew_err write_gauge(struct ew_store *s, const struct gauge *g, FILE *out)
{
    struct ew_rows *rows;
    EW_TRY(ew_store_query(s, &rows, g->sql, ""));
    fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", g->name, g->help, g->name);
    while (ew_rows_next(rows)) {
        if (ew_rows_cell(rows, 0) == EW_CELL_ABSENT)
            continue;
        fprintf(out, "%s{", g->name);
        for (int i = 1; i < ew_rows_columns(rows); i++) {
            fprintf(out, "%s%s=\"", i > 1 ? "," : "", ew_rows_name(rows, i));
            label(out, ew_rows_text(rows, i));
            putc('"', out);
        }
        putc('}', out);
        number(out, ew_rows_num(rows, 0));
    }
    return ew_rows_free(rows);
}

#define LAST_EPOCH(member)                                                                         \
    "SELECT epoch." member ", run.uid AS run, run.study, job.network FROM run "                    \
    "JOIN epoch ON epoch.run = run.id LEFT JOIN job ON job.id = run.job WHERE run.status = "       \
    "'running' AND epoch.epoch = (SELECT max(epoch) FROM epoch AS e WHERE e.run = run.id)"

ew_err ew_route_metrics(const char *db, FILE *out)
{
    static const struct gauge gauges[] = {
        {"edgewise_runs", "Runs by status.",
         "SELECT count(*), status FROM run GROUP BY status ORDER BY status"},
        {"edgewise_study_jobs", "Runs in the study.", "SELECT jobs, name AS study FROM study"},
        {"edgewise_study_done", "Runs of the study that are done.",
         "SELECT done, name AS study FROM study"},
        {"edgewise_study_failed", "Runs of the study that failed.",
         "SELECT failed, name AS study FROM study"},
        {"edgewise_study_left_seconds", "Estimated time left.",
         "SELECT left_s, name AS study FROM study"},
        {"edgewise_run_epoch", "Last finished epoch of a running run.", LAST_EPOCH("epoch")},
        {"edgewise_run_epoch_seconds", "Time of that epoch.", LAST_EPOCH("wall_s")},
        {"edgewise_run_images_per_second", "Training speed in that epoch.",
         LAST_EPOCH("images_per_s")},
        {"edgewise_run_loss", "Validation loss of that epoch.", LAST_EPOCH("loss")},
        {"edgewise_run_accuracy", "Validation accuracy of that epoch.", LAST_EPOCH("accuracy")},
        {"edgewise_run_power_watts", "Mean power in that epoch.", LAST_EPOCH("power_w")},
    };
    struct ew_store *s;
    EW_TRY(with_store(db, &s));
    ew_err e = EW_OK;
    for (size_t i = 0; e == EW_OK && i < EW_COUNT(gauges); i++)
        e = write_gauge(s, &gauges[i], out);
    ew_store_close(s);
    return e;
}
