/* SPDX-License-Identifier: Apache-2.0 */
/* Results from the store into memory. */
#include "report/store/load.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SAMPLES 400000 /* of one run and unit: a day at 4 Hz of one channel */

/* A growing list of rows of one kind. */
struct list {
    char *v;
    int n, cap;
    size_t size;
};

static ew_err read_row(const struct ew_rows *rows, enum ew_record kind, struct ew_arena *a,
                       struct list *l)
{
    EW_TRY(ew_grow((void **)&l->v, &l->cap, l->n + 1, l->size));
    void *row = l->v + (size_t)l->n * l->size;
    ew_record_clear(kind, row);
    EW_TRY(ew_rows_read(rows, kind, a, row));
    l->n++;
    return EW_OK;
}

/* Reads to the end of the query and releases it. */
static ew_err read_all(struct ew_rows *rows, enum ew_record kind, struct ew_arena *a,
                       struct list *l)
{
    ew_err e = EW_OK;
    l->size = ew_record_kind(kind)->size;
    while (e == EW_OK && ew_rows_next(rows))
        e = read_row(rows, kind, a, l);
    const ew_err end = ew_rows_free(rows);
    return e == EW_OK ? end : e;
}

/* ---- Runs with their jobs and machines ---- */

/* A run of the list, by its number in the store. */
struct index {
    int64_t *ids; /* rising */
    int n, cap;
    int first; /* of these runs in the results */
};

static struct ew_run_data *find(const struct index *x, const struct ew_results *r, int64_t id)
{
    int low = 0, high = x->n;
    while (low < high) {
        const int mid = low + (high - low) / 2;
        if (x->ids[mid] < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < x->n && x->ids[low] == id ? &r->runs[x->first + low] : NULL;
}

static ew_err read_runs(struct ew_rows *rows, const char *side, struct ew_results *r,
                        struct index *x)
{
    const int id = ew_rows_find(rows, "id");
    while (ew_rows_next(rows)) {
        struct ew_run_data *d;
        EW_TRY(ew_grow((void **)&x->ids, &x->cap, x->n + 1, sizeof(*x->ids)));
        EW_TRY(ew_results_add(r, &d));
        EW_TRY(ew_rows_read(rows, EW_RECORD_RUN, &r->arena, &d->run));
        d->side = side;
        x->ids[x->n++] = ew_rows_int(rows, id);
    }
    return EW_OK;
}

static ew_err load_runs(struct ew_store *s, const char *study, const char *side,
                        struct ew_results *r, struct index *x)
{
    struct ew_rows *rows;
    x->first = r->n_runs;
    if (study)
        EW_TRY(
            ew_store_query(s, &rows, "SELECT * FROM run WHERE study = ?1 ORDER BY id", "s", study));
    else
        EW_TRY(ew_store_query(s, &rows, "SELECT * FROM run ORDER BY id", ""));
    const ew_err e = read_runs(rows, side, r, x), end = ew_rows_free(rows);
    return e == EW_OK ? end : e;
}

/* Both kinds begin with their id. */
static int by_id(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const void *row_of(const struct list *l, const char *id)
{
    return id && l->n ? bsearch(&id, l->v, (size_t)l->n, l->size, by_id) : NULL;
}

static ew_err load_jobs(struct ew_store *s, struct ew_results *r, int first)
{
    struct ew_rows *rows;
    struct list l = {0};
    EW_TRY(ew_store_query(s, &rows, "SELECT * FROM job WHERE id IS NOT NULL ORDER BY id", ""));
    const ew_err e = read_all(rows, EW_RECORD_JOB, &r->arena, &l);
    for (int i = first; e == EW_OK && i < r->n_runs; i++) {
        const struct ew_job_row *job = row_of(&l, r->runs[i].run.job);
        if (job)
            r->runs[i].job = *job;
    }
    free(l.v);
    return e;
}

static ew_err load_machines(struct ew_store *s, struct ew_results *r, int first)
{
    struct ew_rows *rows;
    struct list l = {0};
    EW_TRY(ew_store_query(s, &rows, "SELECT * FROM machine WHERE id IS NOT NULL ORDER BY id", ""));
    const ew_err e = read_all(rows, EW_RECORD_MACHINE, &r->arena, &l);
    for (int i = first; e == EW_OK && i < r->n_runs; i++) {
        const struct ew_machine_row *machine = row_of(&l, r->runs[i].run.machine);
        if (machine)
            r->runs[i].machine = *machine;
    }
    free(l.v);
    return e;
}

/* ---- What belongs to runs ---- */

/* Attaches rows of a kind to a run. */
static void attach(struct ew_run_data *d, enum ew_record kind, const void *rows, int n)
{
    if (kind == EW_RECORD_EPOCH) {
        d->epochs = rows;
        d->n_epochs = n;
    } else if (kind == EW_RECORD_METRIC) {
        d->metrics = rows;
        d->n_metrics = n;
    } else {
        d->samples = rows;
        d->n_samples = n;
    }
}

static ew_err hand_over(struct ew_results *r, const struct index *x, enum ew_record kind,
                        struct list *l, int64_t run)
{
    struct ew_run_data *d = find(x, r, run);
    if (!d || !l->n) {
        l->n = 0;
        return EW_OK;
    }
    void *rows = ew_arena_array(&r->arena, (size_t)l->n, l->size);
    EW_CHECK(rows, EW_ERR_MEMORY, "no memory for %d rows", l->n);
    memcpy(rows, l->v, (size_t)l->n * l->size);
    attach(d, kind, rows, l->n);
    l->n = 0;
    return EW_OK;
}

/* Loads rows of a query that is sorted by run. */
static ew_err load_rows(struct ew_rows *rows, enum ew_record kind, struct ew_results *r,
                        const struct index *x)
{
    struct list l = {.size = ew_record_kind(kind)->size};
    const int column = ew_rows_find(rows, "run");
    int64_t run = -1;
    ew_err e = EW_OK;
    while (e == EW_OK && ew_rows_next(rows)) {
        const int64_t of = ew_rows_int(rows, column);
        if (of != run)
            e = hand_over(r, x, kind, &l, run);
        run = of;
        if (e == EW_OK && find(x, r, run))
            e = read_row(rows, kind, &r->arena, &l);
    }
    if (e == EW_OK)
        e = hand_over(r, x, kind, &l, run);
    free(l.v);
    const ew_err end = ew_rows_free(rows);
    return e == EW_OK ? end : e;
}

/* Loads samples only of runs that a figure may choose and of the units that are drawn: there are
 * many. */
static ew_err load_samples(struct ew_store *s, struct ew_results *r, const struct index *x)
{
    struct ew_rows *rows;
    EW_TRY(ew_store_query(
        s, &rows,
        "SELECT * FROM sample WHERE unit IN ('W', '%', 'MHz', 'B') AND run IN (SELECT id FROM "
        "(SELECT run.id "
        "AS id, max(run.wall_s) FROM run JOIN job ON job.id = run.job WHERE run.status = 'done' "
        "AND EXISTS (SELECT 1 FROM sample WHERE sample.run = run.id AND sample.unit IN ('W', '%')) "
        "GROUP BY job.network)) ORDER BY run, channel, t_s LIMIT ?1",
        "i", (int64_t)MOST_SAMPLES));
    return load_rows(rows, EW_RECORD_SAMPLE, r, x);
}

static ew_err load_published(struct ew_store *s, const char *study, struct ew_results *r)
{
    struct ew_rows *rows;
    struct list l = {0};
    if (study)
        EW_TRY(ew_store_query(s, &rows, "SELECT * FROM published WHERE study = ?1", "s", study));
    else
        EW_TRY(ew_store_query(s, &rows, "SELECT * FROM published", ""));
    ew_err e = read_all(rows, EW_RECORD_PUBLISHED, &r->arena, &l);
    for (int i = 0; e == EW_OK && i < l.n; i++)
        e = ew_results_publish(r, (const struct ew_published_row *)(const void *)l.v + i);
    free(l.v);
    return e;
}

static ew_err load_studies(struct ew_store *s, const char *study, struct ew_results *r)
{
    struct ew_rows *rows;
    struct list l = {0};
    EW_TRY(ew_store_query(s, &rows, "SELECT * FROM study ORDER BY name", ""));
    ew_err e = read_all(rows, EW_RECORD_STUDY, &r->arena, &l);
    const struct ew_study_row *v = (const void *)l.v;
    for (int i = 0; e == EW_OK && i < l.n; i++)
        if (!study || (v[i].name && strcmp(v[i].name, study) == 0))
            e = ew_results_add_study(r, &v[i]);
    free(l.v);
    return e;
}

static ew_err load_parts(struct ew_store *s, struct ew_results *r, const struct index *x)
{
    struct ew_rows *rows;
    EW_TRY(load_jobs(s, r, x->first));
    EW_TRY(load_machines(s, r, x->first));
    EW_TRY(ew_store_query(s, &rows, "SELECT * FROM epoch ORDER BY run, epoch", ""));
    EW_TRY(load_rows(rows, EW_RECORD_EPOCH, r, x));
    EW_TRY(ew_store_query(s, &rows, "SELECT * FROM metric ORDER BY run", ""));
    EW_TRY(load_rows(rows, EW_RECORD_METRIC, r, x));
    return load_samples(s, r, x);
}

ew_err ew_results_load(struct ew_store *s, const char *study, const char *side,
                       struct ew_results *r)
{
    struct index x = {0};
    ew_err e = load_runs(s, study, side, r, &x);
    if (e == EW_OK)
        e = load_parts(s, r, &x);
    if (e == EW_OK)
        e = load_published(s, study, r);
    if (e == EW_OK)
        e = load_studies(s, study, r);
    free(x.ids);
    return e;
}
