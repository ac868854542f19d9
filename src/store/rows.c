/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: statements with parameters, rows and cells, records from rows. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "store/store_impl.h"

#define UID_BEGINNING 4 /* characters: anything shorter is more likely a mistyped run number */

struct ew_rows {
    struct ew_store *store;
    sqlite3_stmt *st;
    unsigned char *origins; /* enum ew_column of each; NULL: all are EW_COLUMN_RUN */
    ew_err err;
};

ew_err ew_rows_new(struct ew_store *s, sqlite3_stmt *st, struct ew_rows **out)
{
    struct ew_rows *r = calloc(1, sizeof(*r));
    if (!r) {
        sqlite3_finalize(st);
        return ew_fail(EW_ERR_MEMORY, "no memory for a query");
    }
    *r = (struct ew_rows){.store = s, .st = st};
    *out = r;
    return EW_OK;
}

static void bind_all(sqlite3_stmt *st, const char *types, va_list ap)
{
    for (int i = 1; *types; types++, i++)
        if (*types == 'i')
            sqlite3_bind_int64(st, i, va_arg(ap, int64_t));
        else if (*types == 'd')
            sqlite3_bind_double(st, i, va_arg(ap, double));
        else
            sqlite3_bind_text(st, i, va_arg(ap, const char *), -1, SQLITE_TRANSIENT);
}

static ew_err query(struct ew_store *s, const char *sql, const char *types, va_list ap,
                    struct ew_rows **out)
{
    sqlite3_stmt *st = NULL;
    EW_TRY(ew_store_prepare(s, sql, 0, &st));
    bind_all(st, types, ap);
    return ew_rows_new(s, st, out);
}

ew_err ew_store_query(struct ew_store *s, struct ew_rows **out, const char *sql, const char *types,
                      ...)
{
    va_list ap;
    va_start(ap, types);
    const ew_err err = query(s, sql, types, ap, out);
    va_end(ap);
    return err;
}

ew_err ew_store_int(struct ew_store *s, int64_t *out, bool *found, const char *sql,
                    const char *types, ...)
{
    struct ew_rows *rows;
    va_list ap;
    va_start(ap, types);
    const ew_err err = query(s, sql, types, ap, &rows);
    va_end(ap);
    EW_TRY(err);
    *found = ew_rows_next(rows) && ew_rows_cell(rows, 0) != EW_CELL_ABSENT;
    if (*found)
        *out = ew_rows_int(rows, 0);
    return ew_rows_free(rows);
}

bool ew_rows_next(struct ew_rows *r)
{
    if (r->err != EW_OK)
        return false;
    const int rc = sqlite3_step(r->st);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        r->err = ew_store_fail(r->store, rc);
    return rc == SQLITE_ROW;
}

ew_err ew_rows_set_origins(struct ew_rows *r, const unsigned char *origins)
{
    const size_t n = (size_t)ew_rows_columns(r);
    r->origins = malloc(n);
    EW_CHECK(r->origins, EW_ERR_MEMORY, "no memory for %zu columns", n);
    memcpy(r->origins, origins, n);
    return EW_OK;
}

enum ew_column ew_rows_origin(const struct ew_rows *r, int column)
{
    return r->origins ? (enum ew_column)r->origins[column] : EW_COLUMN_RUN;
}

int ew_rows_columns(const struct ew_rows *r)
{
    return sqlite3_column_count(r->st);
}

const char *ew_rows_name(const struct ew_rows *r, int column)
{
    return sqlite3_column_name(r->st, column);
}

int ew_rows_find(const struct ew_rows *r, const char *name)
{
    for (int i = 0; i < ew_rows_columns(r); i++)
        if (strcmp(ew_rows_name(r, i), name) == 0)
            return i;
    return -1;
}

enum ew_cell ew_rows_cell(const struct ew_rows *r, int column)
{
    switch (sqlite3_column_type(r->st, column)) {
    case SQLITE_INTEGER:
        return EW_CELL_INT;
    case SQLITE_FLOAT:
        return EW_CELL_NUM;
    case SQLITE_TEXT:
    case SQLITE_BLOB:
        return EW_CELL_TEXT;
    default:
        return EW_CELL_ABSENT;
    }
}

int64_t ew_rows_int(const struct ew_rows *r, int column)
{
    const bool there = ew_rows_cell(r, column) != EW_CELL_ABSENT;
    return there ? sqlite3_column_int64(r->st, column) : EW_INT_ABSENT;
}

double ew_rows_num(const struct ew_rows *r, int column)
{
    const bool there = ew_rows_cell(r, column) != EW_CELL_ABSENT;
    return there ? sqlite3_column_double(r->st, column) : (double)NAN;
}

const char *ew_rows_text(const struct ew_rows *r, int column)
{
    const void *text = sqlite3_column_text(r->st, column);
    return text;
}

void ew_rows_json(struct ew_json *j, const struct ew_rows *r, int column)
{
    const char *name = ew_rows_name(r, column);
    switch (ew_rows_cell(r, column)) {
    case EW_CELL_ABSENT:
        ew_json_null(j, name);
        break;
    case EW_CELL_INT:
        ew_json_int(j, name, ew_rows_int(r, column));
        break;
    case EW_CELL_NUM:
        ew_json_num(j, name, ew_rows_num(r, column));
        break;
    case EW_CELL_TEXT:
        ew_json_str(j, name, ew_rows_text(r, column));
        break;
    }
}

ew_err ew_rows_free(struct ew_rows *r)
{
    if (!r)
        return EW_OK;
    const ew_err err = r->err;
    sqlite3_finalize(r->st);
    free(r->origins);
    free(r);
    return err;
}

/* ---- Records --------------------------------------------------------------------------------- */

static ew_err read_field(const struct ew_rows *r, int column, const struct ew_field *f,
                         struct ew_arena *a, void *row)
{
    void *at = (char *)row + f->offset;
    const char *text;
    switch (f->type) {
    case EW_FIELD_BOOL:
        *(bool *)at = ew_rows_int(r, column) == 1;
        return EW_OK;
    case EW_FIELD_INT:
    case EW_FIELD_SIZE:
        *(int64_t *)at = ew_rows_int(r, column);
        return EW_OK;
    case EW_FIELD_FLOAT:
        *(double *)at = ew_rows_num(r, column);
        return EW_OK;
    case EW_FIELD_STR:
    case EW_FIELD_ENUM:
    case EW_FIELD_INTS:
        break;
    }
    text = ew_rows_text(r, column);
    if (!text)
        return EW_OK;
    char *copy = ew_arena_strdup(a, text);
    EW_CHECK(copy, EW_ERR_MEMORY, "no memory for a row");
    return ew_field_parse(f, copy, row);
}

/* The run of the current row; 0: none. */
static int64_t run_of(const struct ew_rows *r)
{
    const int run = ew_rows_find(r, "run"), id = ew_rows_find(r, "id");
    const int column = run >= 0 ? run : id;
    return column >= 0 && ew_rows_cell(r, column) == EW_CELL_INT ? ew_rows_int(r, column) : 0;
}

/* Adds file and row to the message about an invalid value. */
static ew_err bad_row(const struct ew_rows *r, enum ew_record kind, ew_err err)
{
    const int64_t run = run_of(r);
    char text[32] = "";
    if (run)
        snprintf(text, sizeof(text), " of run %lld", (long long)run);
    const ew_err code =
        err == EW_ERR_USAGE ? EW_ERR_FORMAT : err; /* the value is the file's, not the user's */
    return ew_fail_in(code, "%s: a row '%s'%s", r->store->path, ew_record_kind(kind)->name, text);
}

ew_err ew_rows_read(const struct ew_rows *r, enum ew_record kind, struct ew_arena *a, void *row)
{
    ew_record_clear(kind, row);
    for (const struct ew_field *f = ew_record_kind(kind)->fields; f->name; f++) {
        const int column = ew_rows_find(r, f->name);
        const ew_err err = column >= 0 ? read_field(r, column, f, a, row) : EW_OK;
        if (err != EW_OK)
            return bad_row(r, kind, err);
    }
    return EW_OK;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

ew_err ew_store_run_find(struct ew_store *s, const char *text, int64_t *run)
{
    int64_t number, n = 0;
    bool found = false;
    if (ew_num_int(text, &number))
        EW_TRY(ew_store_int(s, run, &found, "SELECT id FROM run WHERE id = ?1", "i", number));
    if (found)
        return EW_OK;
    EW_CHECK(strlen(text) >= UID_BEGINNING, EW_ERR_NOT_FOUND, "%s: no run '%s'", s->path, text);
    EW_TRY(ew_store_int(s, &n, &found,
                        "SELECT count(*) FROM run WHERE substr(uid, 1, length(?1)) = ?1", "s",
                        text));
    EW_CHECK(n > 0, EW_ERR_NOT_FOUND, "%s: no run '%s'", s->path, text);
    EW_CHECK(n == 1, EW_ERR_ARG, "%s: '%s' is the beginning of %lld runs", s->path, text,
             (long long)n);
    return ew_store_int(s, run, &found, "SELECT id FROM run WHERE substr(uid, 1, length(?1)) = ?1",
                        "s", text);
}

ew_err ew_store_job_done(struct ew_store *s, const struct ew_run_row *run, const char *unit,
                         bool *found)
{
    int64_t id;
    return ew_store_int(s, &id, found,
                        "SELECT run.id FROM run JOIN machine ON machine.id = run.machine WHERE "
                        "run.job = ?1 AND run.study IS ?2 AND run.repeat = ?3 AND machine.unit = "
                        "?4 AND run.status = 'done' LIMIT 1",
                        "ssis", run->job, run->study, run->repeat, unit);
}
