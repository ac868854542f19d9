/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the store. */
#ifndef EW_STORE_STORE_IMPL_H
#define EW_STORE_STORE_IMPL_H

#include <sqlite3.h>

#include "store/store.h"

struct ew_store {
    sqlite3 *db;
    char *path;
    bool read_only;
    bool grouped;    /* between begin and end */
    bool full;       /* a statement failed because the disk is full */
    bool unfinished; /* or because a writer was interrupted, and only a writer can undo that */
    int64_t steps, max_steps;       /* of the current statement, in units of STEP_UNIT */
    sqlite3_stmt *put[EW_RECORD_N]; /* prepared when first used */
};

/* Properties of a record's table beside its fields. */
struct ew_table_form {
    bool of_run;      /* belongs to a run: column `run` */
    const char *key;  /* columns; NULL: rows may be the same */
    bool first_stays; /* a row with the same key is left as it is, else it is replaced */
};
const struct ew_table_form *ew_table_form(enum ew_record r);

/* Turns a result code into a failure that names the file. */
ew_err ew_store_fail(struct ew_store *s, int rc);

/* Refuses files beside the database that would let SQLite write to or delete others. */
ew_err ew_store_check_beside(const char *path);
/* Whether a log or journal beside the database has content. */
bool ew_store_has_log(const char *path);

/* Runs statements without a result. */
ew_err ew_store_exec(struct ew_store *s, const char *sql);

/* Prepares one statement; `flags` as sqlite3_prepare_v3 takes them. */
ew_err ew_store_prepare(struct ew_store *s, const char *sql, unsigned flags, sqlite3_stmt **out);

/* Schema version: EW_STORE_LAYOUT and the number of columns.  Fields are never removed, so newer
 * programs have a higher one. */
int ew_schema_version(void);

/* Makes missing tables and columns; inside a transaction. */
ew_err ew_schema_upgrade(struct ew_store *s);

/* "run, a, b, c" of a record; from the arena. */
const char *ew_schema_columns(enum ew_record r, struct ew_arena *a);

/* Rows of a statement, whose ownership they take. */
ew_err ew_rows_new(struct ew_store *s, sqlite3_stmt *st, struct ew_rows **out);

#define EW_MAX_COLUMNS 1000 /* of results: below SQLite's own limit of 2000 */
/* `origins` has one for each column. */
ew_err ew_rows_set_origins(struct ew_rows *r, const unsigned char *origins);

#endif
