/* SPDX-License-Identifier: Apache-2.0 */
/* The results: one SQLite file per project folder, its tables made from the field tables of
 * record/record.h.
 *
 * Several processes may write: each waits some seconds for its turn.  A put is on disk when it
 * returns; puts between begin and end are a transaction.  A process that is killed leaves its run
 * "running"; the next one to open the file finds that the process is gone and marks the run
 * interrupted.  A full disk is reported and leaves the file as it was.
 *
 * A handle belongs to one thread. */
#ifndef EW_STORE_STORE_H
#define EW_STORE_STORE_H

#include "base/json.h"
#include "base/mem.h"
#include "record/record.h"

/* To be raised when tables change other than by new fields; those show in the number of columns.
 */
#define EW_STORE_LAYOUT 1
#define EW_STORE_FILE   "edgewise.db"

struct ew_store;

struct ew_store_opts {
    bool read_only;    /* must exist, and nothing is changed */
    bool existing;     /* must exist */
    int64_t max_pages; /* for tests: the disk is full beyond these; 0: no limit */
    int64_t max_steps; /* for tests: millions of SQLite's steps that a statement may take; 0: 4,000,
                          which is about a minute */
};

/* Whether the file is an SQLite database with tables.  SQLite opens it for that: closing a
 * descriptor of our own would drop this process's POSIX locks on it. */
bool ew_store_is(const char *path);

/* Opens or makes the file and brings its tables up to date. `opts` may be NULL.  Refuses files of
 * other programs and of newer versions. */
ew_err ew_store_open(const char *path, const struct ew_store_opts *opts, struct ew_store **out);
void ew_store_close(struct ew_store *s); /* NULL is fine */
const char *ew_store_path(const struct ew_store *s);

/* ---- Writing --------------------------------------------------------------------------------- */

/* Begins a transaction; end(false) and closing roll it back. */
ew_err ew_store_begin(struct ew_store *s);
ew_err ew_store_end(struct ew_store *s, bool keep);

/* Checkpoints the write-ahead log, so that the file can be copied alone.  (Closing does so too, but
 * cannot report failures.) */
ew_err ew_store_settle(struct ew_store *s);

/* Writes a row; one with the same key is replaced (machines and jobs are left: their key is a hash
 * of the rest).  `run` is the number of the run that epochs, batches, samples and metrics belong
 * to, else 0.  Runs have functions of their own. */
ew_err ew_store_put(struct ew_store *s, enum ew_record r, int64_t run, const void *row);

/* Adds a run, `status` running; uid, started, pid and stamp are filled in where absent. */
ew_err ew_store_run_begin(struct ew_store *s, const struct ew_run_row *row, int64_t *run);

/* Sets those fields of a run that are not absent in `row`. */
ew_err ew_store_run_update(struct ew_store *s, int64_t run, const struct ew_run_row *row);

/* The run is over. */
ew_err ew_store_run_end(struct ew_store *s, int64_t run, enum ew_run_status status,
                        const char *reason, double wall_s);

/* Deletes a run and all its rows. */
ew_err ew_store_run_delete(struct ew_store *s, int64_t run);

/* Copies all finished runs from `from` that `to` does not have, with their jobs, machines and
 * studies; `where` as in ew_store_results, NULL: all.  Copying twice changes nothing. */
ew_err ew_store_copy(struct ew_store *from, struct ew_store *to, const char *where, int *copied);

/* What runs from an untrusted machine must match. */
struct ew_store_claim {
    const char *job, *study, *unit;
    int64_t repeat;
};

/* As ew_store_copy, from a machine that is not trusted: a run that is not of this job, study and
 * repetition, or of another machine than `unit`, is refused, and nothing but runs and their machine
 * comes along. */
ew_err ew_store_take(struct ew_store *from, struct ew_store *to, const struct ew_store_claim *claim,
                     int *copied);

/* ---- Reading --------------------------------------------------------------------------------- */

/* A result, row by row. */
struct ew_rows;

enum ew_cell { EW_CELL_ABSENT, EW_CELL_INT, EW_CELL_NUM, EW_CELL_TEXT };

/* A SELECT with up to 8 parameters ?1, ?2, ... bound as text or number in order: ew_store_query(s,
 * &rows, "SELECT name FROM metric WHERE run = ?1", "i", run). `types` has one letter each: i
 * int64_t, d double, s const char *.  Release with ew_rows_free. */
ew_err ew_store_query(struct ew_store *s, struct ew_rows **out, const char *sql, const char *types,
                      ...);

/* A statement that gives one number; `*found` is false where there is no row or it is NULL. */
ew_err ew_store_int(struct ew_store *s, int64_t *out, bool *found, const char *sql,
                    const char *types, ...);

/* Runs as one wide table: the run's fields, its machine's (with "machine_" before), every option
 * and every metric that occurs but those with a ':' in their names (parts of a matrix), '-' and
 * other signs turned to '_'.  `where` is an expression over
 * these names, NULL: all; it is read-only. `order` as well, NULL: by id. */
ew_err ew_store_results(struct ew_store *s, const char *where, const char *order,
                        struct ew_rows **out);

/* Where a column of ew_store_results comes from; EW_COLUMN_RUN for other queries. */
enum ew_column {
    EW_COLUMN_RUN,
    EW_COLUMN_JOB,
    EW_COLUMN_OPTION,
    EW_COLUMN_METRIC,
    EW_COLUMN_MACHINE
};
enum ew_column ew_rows_origin(const struct ew_rows *r, int column);

/* The next row; false at the end and on a failure, which ew_rows_free reports. */
bool ew_rows_next(struct ew_rows *r);
int ew_rows_columns(const struct ew_rows *r);
const char *ew_rows_name(const struct ew_rows *r, int column);
int ew_rows_find(const struct ew_rows *r, const char *name); /* -1: none */
enum ew_cell ew_rows_cell(const struct ew_rows *r, int column);
int64_t ew_rows_int(const struct ew_rows *r, int column);      /* EW_INT_ABSENT where absent */
double ew_rows_num(const struct ew_rows *r, int column);       /* nan where absent */
const char *ew_rows_text(const struct ew_rows *r, int column); /* NULL where absent; till next */
/* Writes the value under the column's name; null where absent. */
void ew_rows_json(struct ew_json *j, const struct ew_rows *r, int column);
ew_err ew_rows_free(struct ew_rows *r); /* NULL is fine */

/* Fills a record from the columns that have its fields' names; text goes to the arena. */
ew_err ew_rows_read(const struct ew_rows *r, enum ew_record kind, struct ew_arena *a, void *row);

/* The run that "12", or the beginning of a uid (four characters at least), means. */
ew_err ew_store_run_find(struct ew_store *s, const char *text, int64_t *run);

/* Every finished run of the job on the device `unit` in this study, repetitions counted apart:
 * *found tells whether `repeat` is done (or skipped for good). */
ew_err ew_store_job_done(struct ew_store *s, const struct ew_run_row *run, const char *unit,
                         bool *found);

#endif
