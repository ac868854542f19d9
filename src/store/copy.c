/* SPDX-License-Identifier: Apache-2.0 */
/* Merging databases: copies finished runs, identified by uid, each completely or not at all.  Rows
 * pass through the record structs, so that an unusual or malicious file can add nothing but
 * records. */
#include <string.h>

#include "base/log.h"
#include "store/store_impl.h"

union any_row {
    struct ew_machine_row machine;
    struct ew_job_row job;
    struct ew_run_row run;
    struct ew_epoch_row epoch;
    struct ew_batch_row batch;
    struct ew_sample_row sample;
    struct ew_metric_row metric;
    struct ew_study_row study;
    struct ew_published_row published;
};

struct copying {
    struct ew_store *from, *to;
    struct ew_arena arena;
    const struct ew_store_claim *claim; /* NULL: any run */
};

/* Copies the results of `sql` as rows of this kind. */
static ew_err copy_rows(struct copying *c, enum ew_record kind, int64_t run, struct ew_rows *rows)
{
    ew_err err = EW_OK;
    while (err == EW_OK && ew_rows_next(rows)) {
        union any_row row;
        ew_arena_reset(&c->arena);
        err = ew_rows_read(rows, kind, &c->arena, &row);
        if (err == EW_OK)
            err = ew_store_put(c->to, kind, run, &row);
    }
    const ew_err read = ew_rows_free(rows);
    return err == EW_OK ? read : err;
}

static ew_err copy_by_text(struct copying *c, enum ew_record kind, const char *sql,
                           const char *value)
{
    struct ew_rows *rows;
    EW_TRY(ew_store_query(c->from, &rows, sql, "s", value));
    return copy_rows(c, kind, 0, rows);
}

static ew_err copy_children(struct copying *c, int64_t from, int64_t to)
{
    static const enum ew_record kinds[] = {EW_RECORD_EPOCH, EW_RECORD_BATCH, EW_RECORD_SAMPLE,
                                           EW_RECORD_METRIC};
    static const char *const sql[] = {
        "SELECT * FROM epoch WHERE run = ?1", "SELECT * FROM batch WHERE run = ?1",
        "SELECT * FROM sample WHERE run = ?1", "SELECT * FROM metric WHERE run = ?1"};
    for (size_t i = 0; i < EW_COUNT(kinds); i++) {
        struct ew_rows *rows;
        EW_TRY(ew_store_query(c->from, &rows, sql[i], "i", from));
        EW_TRY(copy_rows(c, kinds[i], to, rows));
    }
    return EW_OK;
}

/* Accepts any description of a machine, but only under the machine's own name. */
static ew_err check_machine(struct copying *c, const struct ew_run_row *run)
{
    const char *unit = c->claim->unit;
    struct ew_machine_row m;
    struct ew_rows *rows;
    char id[EW_RECORD_ID_CHARS] = "";
    EW_TRY(ew_store_query(c->from, &rows, "SELECT * FROM machine WHERE id = ?1", "s",
                          run->machine ? run->machine : ""));
    ew_arena_reset(&c->arena);
    ew_record_clear(EW_RECORD_MACHINE, &m);
    ew_err err = EW_OK;
    if (ew_rows_next(rows))
        err = ew_rows_read(rows, EW_RECORD_MACHINE, &c->arena, &m);
    if (err == EW_OK)
        err = ew_machine_row_id(&m, id);
    if (err == EW_OK && (!m.id || !m.unit || strcmp(m.id, id) != 0 || strcmp(m.unit, unit) != 0))
        err = ew_fail(EW_ERR_FORMAT, "%s: sent a run of the machine '%.40s'", unit,
                      m.unit ? m.unit : "?");
    const ew_err read = ew_rows_free(rows);
    return err == EW_OK ? read : err;
}

static ew_err check_claim(struct copying *c, const struct ew_run_row *run)
{
    const struct ew_store_claim *k = c->claim;
    EW_CHECK(run->job && strcmp(run->job, k->job) == 0 && run->study &&
                 strcmp(run->study, k->study) == 0 && run->repeat == k->repeat,
             EW_ERR_FORMAT, "%s: sent a run that does not belong to job %s", k->unit, k->job);
    return check_machine(c, run);
}

static ew_err copy_run(struct copying *c, int64_t id, const struct ew_run_row *run)
{
    if (c->claim)
        EW_TRY(check_claim(c, run));
    EW_TRY(copy_by_text(c, EW_RECORD_MACHINE, "SELECT * FROM machine WHERE id = ?1", run->machine));
    if (!c->claim)
        EW_TRY(copy_by_text(c, EW_RECORD_JOB, "SELECT * FROM job WHERE id = ?1", run->job));
    if (run->study && !c->claim) {
        EW_TRY(copy_by_text(c, EW_RECORD_STUDY, "SELECT * FROM study WHERE name = ?1", run->study));
        EW_TRY(copy_by_text(c, EW_RECORD_PUBLISHED, "SELECT * FROM published WHERE study = ?1",
                            run->study));
    }
    int64_t to;
    EW_TRY(ew_store_run_begin(c->to, run, &to));
    return copy_children(c, id, to);
}

static ew_err copy_if_new(struct copying *c, int64_t id, const struct ew_run_row *run, int *copied)
{
    bool there;
    int64_t n;
    if (!run->uid || strlen(run->uid) != EW_RUN_UID_CHARS - 1) {
        EW_CHECK(!c->claim, EW_ERR_FORMAT, "%s: run %lld has no uid", c->from->path, (long long)id);
        EW_WARN("%s: run %lld has no uid, by which a copy would be known again; it is left out",
                c->from->path, (long long)id);
        return EW_OK;
    }
    EW_TRY(ew_store_begin(c->to));
    ew_err err =
        ew_store_int(c->to, &n, &there, "SELECT id FROM run WHERE uid = ?1", "s", run->uid);
    if (err == EW_OK && !there)
        err = copy_run(c, id, run);
    const ew_err ended = ew_store_end(c->to, err == EW_OK);
    *copied += err == EW_OK && !there;
    return err == EW_OK ? ended : err;
}

static ew_err copy_all(struct copying *c, const char *where, int *copied)
{
    struct ew_arena arena;
    struct ew_rows *rows;
    *copied = 0;
    EW_TRY(ew_store_results(c->from, where, NULL, &rows));
    ew_arena_init(&arena);
    ew_arena_init(&c->arena);
    ew_err err = EW_OK;
    while (err == EW_OK && ew_rows_next(rows)) {
        struct ew_run_row run;
        ew_arena_reset(&arena);
        err = ew_rows_read(rows, EW_RECORD_RUN, &arena, &run);
        if (err == EW_OK && run.pid == EW_INT_ABSENT)
            run.pid = 0; /* else run_begin would write ours */
        if (err == EW_OK && run.status != EW_RUN_RUNNING && run.status != EW_RUN_INTERRUPTED)
            err = copy_if_new(c, ew_rows_int(rows, 0), &run, copied);
    }
    const ew_err read = ew_rows_free(rows);
    ew_arena_fini(&arena);
    ew_arena_fini(&c->arena);
    return err == EW_OK ? read : err;
}

ew_err ew_store_copy(struct ew_store *from, struct ew_store *to, const char *where, int *copied)
{
    return copy_all(&(struct copying){.from = from, .to = to}, where, copied);
}

ew_err ew_store_take(struct ew_store *from, struct ew_store *to, const struct ew_store_claim *claim,
                     int *copied)
{
    return copy_all(&(struct copying){.from = from, .to = to, .claim = claim}, NULL, copied);
}
