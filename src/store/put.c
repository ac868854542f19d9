/* SPDX-License-Identifier: Apache-2.0 */
/* Writing rows by their field tables. */
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "store/store_impl.h"

static int bind_field(sqlite3_stmt *st, int at, const struct ew_field *f, const void *row)
{
    const void *p = (const char *)row + f->offset;
    char text[512];
    if (ew_field_absent(f, row))
        return sqlite3_bind_null(st, at);
    switch (f->type) {
    case EW_FIELD_BOOL:
        return sqlite3_bind_int(st, at, *(const bool *)p);
    case EW_FIELD_INT:
    case EW_FIELD_SIZE:
        return sqlite3_bind_int64(st, at, *(const int64_t *)p);
    case EW_FIELD_FLOAT:
        return sqlite3_bind_double(st, at, *(const double *)p);
    case EW_FIELD_STR:
        return sqlite3_bind_text(st, at, *(const char *const *)p, -1, SQLITE_TRANSIENT);
    case EW_FIELD_ENUM:
    case EW_FIELD_INTS:
        break;
    }
    ew_field_print(f, row, text, sizeof(text));
    return sqlite3_bind_text(st, at, text, -1, SQLITE_TRANSIENT);
}

/* Binds the fields of `row` from parameter `first` on. */
static ew_err bind_row(struct ew_store *s, sqlite3_stmt *st, int first, enum ew_record r,
                       const void *row)
{
    for (const struct ew_field *f = ew_record_kind(r)->fields; f->name; f++) {
        const int rc = bind_field(st, first++, f, row);
        if (rc != SQLITE_OK)
            return ew_store_fail(s, rc);
    }
    return EW_OK;
}

/* Runs a statement that gives nothing and makes it ready for the next time. */
static ew_err step_once(struct ew_store *s, sqlite3_stmt *st)
{
    s->steps = 0;
    const int rc = sqlite3_step(st);
    const ew_err err = rc == SQLITE_DONE || rc == SQLITE_ROW ? EW_OK : ew_store_fail(s, rc);
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
    return err;
}

/* "INSERT OR REPLACE INTO epoch(run, ...) VALUES(?, ...)". */
static ew_err prepare_put(struct ew_store *s, enum ew_record r)
{
    if (s->put[r])
        return EW_OK;
    const struct ew_table_form *form = ew_table_form(r);
    struct ew_arena a;
    ew_arena_init(&a);
    const char *columns = ew_schema_columns(r, &a), *marks = NULL, *sql = NULL;
    for (const char *p = columns; p; p = strchr(p + 1, ','))
        marks = ew_arena_printf(&a, "%s%s", marks ? marks : "", marks ? ", ?" : "?");
    if (marks)
        sql = ew_arena_printf(&a, "INSERT%s INTO \"%s\"(%s) VALUES(%s)",
                              form->first_stays                 ? " OR IGNORE"
                              : form->key && r != EW_RECORD_RUN ? " OR REPLACE"
                                                                : "",
                              ew_record_kind(r)->name, columns, marks);
    ew_err err = sql ? ew_store_prepare(s, sql, SQLITE_PREPARE_PERSISTENT, &s->put[r])
                     : ew_fail(EW_ERR_MEMORY, "no memory for a statement");
    ew_arena_fini(&a);
    return err;
}

static ew_err put(struct ew_store *s, enum ew_record r, int64_t run, const void *row)
{
    EW_TRY(prepare_put(s, r));
    sqlite3_stmt *st = s->put[r];
    const bool of_run = ew_table_form(r)->of_run;
    if (of_run)
        sqlite3_bind_int64(st, 1, run);
    EW_TRY(bind_row(s, st, of_run ? 2 : 1, r, row));
    return step_once(s, st);
}

/* Refuses two different sets of options with the same hash, which would share their results. */
static ew_err check_job(struct ew_store *s, const struct ew_job_row *job)
{
    bool other;
    int64_t n;
    EW_CHECK(job->id && job->options, EW_ERR_INTERNAL, "a job without id or options");
    EW_TRY(ew_store_int(s, &n, &other, "SELECT 1 FROM job WHERE id = ?1 AND options <> ?2", "ss",
                        job->id, job->options));
    EW_CHECK(!other, EW_ERR_INTERNAL, "%s: two jobs with the hash %s", s->path, job->id);
    EW_TRY(ew_store_int(s, &n, &other, "SELECT 1 WHERE json_valid(?1)", "s", job->options));
    EW_CHECK(other, EW_ERR_FORMAT, "%s: options of job %s are no JSON", s->path, job->id);
    return EW_OK;
}

ew_err ew_store_put(struct ew_store *s, enum ew_record r, int64_t run, const void *row)
{
    EW_CHECK(r != EW_RECORD_RUN, EW_ERR_INTERNAL, "runs are put by ew_store_run_begin");
    if (r == EW_RECORD_JOB)
        EW_TRY(check_job(s, row));
    return put(s, r, run, row);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

ew_err ew_store_run_begin(struct ew_store *s, const struct ew_run_row *row, int64_t *run)
{
    struct ew_run_row r = *row;
    char uid[EW_RUN_UID_CHARS], started[EW_RUN_TIME_CHARS], stamp[EW_STAMP_CHARS];
    if (!r.uid) {
        EW_TRY(ew_run_new_uid(uid));
        r.uid = uid;
    }
    if (!r.started) {
        ew_run_time_text(started);
        r.started = started;
    }
    if (r.pid == EW_INT_ABSENT) {
        r.pid = getpid();
        ew_process_stamp((int)r.pid, stamp);
        r.stamp = stamp;
    }
    if (r.status < 0)
        r.status = EW_RUN_RUNNING;
    EW_TRY(put(s, EW_RECORD_RUN, 0, &r));
    *run = sqlite3_last_insert_rowid(s->db);
    return EW_OK;
}

ew_err ew_store_run_update(struct ew_store *s, int64_t run, const struct ew_run_row *row)
{
    struct ew_arena a;
    ew_arena_init(&a);
    const struct ew_field *fields = ew_record_kind(EW_RECORD_RUN)->fields;
    const char *sets = "";
    int at = 1;
    for (const struct ew_field *f = fields; f->name && sets; f++, at++)
        if (!ew_field_absent(f, row))
            sets = ew_arena_printf(&a, "%s%s\"%s\" = ?%d", sets, *sets ? ", " : "", f->name, at);
    const char *sql =
        sets ? ew_arena_printf(&a, "UPDATE run SET %s WHERE id = ?%d", sets, at) : NULL;
    sqlite3_stmt *st = NULL;
    ew_err err = sql ? EW_OK : ew_fail(EW_ERR_MEMORY, "no memory for a statement");
    if (err == EW_OK && *sets)
        err = ew_store_prepare(s, sql, 0, &st);
    at = 1;
    for (const struct ew_field *f = fields; f->name && st; f++, at++)
        if (!ew_field_absent(f, row))
            bind_field(st, at, f, row);
    if (st) {
        sqlite3_bind_int64(st, at, run);
        err = step_once(s, st);
        sqlite3_finalize(st);
    }
    ew_arena_fini(&a);
    return err;
}

ew_err ew_store_run_end(struct ew_store *s, int64_t run, enum ew_run_status status,
                        const char *reason, double wall_s)
{
    struct ew_run_row r;
    ew_record_clear(EW_RECORD_RUN, &r);
    r.status = (int)status;
    r.reason = reason;
    r.wall_s = wall_s;
    return ew_store_run_update(s, run, &r);
}

ew_err ew_store_run_delete(struct ew_store *s, int64_t run)
{
    sqlite3_stmt *st = NULL;
    EW_TRY(ew_store_prepare(s, "DELETE FROM run WHERE id = ?1", 0, &st));
    sqlite3_bind_int64(st, 1, run);
    const ew_err err = step_once(s, st);
    sqlite3_finalize(st);
    return err;
}
