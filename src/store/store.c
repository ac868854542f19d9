/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing the store, transactions and failures. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/process.h"
#include "store/store_impl.h"

#define APPLICATION  "1162299223" /* "EDGW": marks files of Edgewise */
#define WAIT_MS      15000        /* for other writers */
#define STEP_UNIT    1000000    /* steps of SQLite's virtual machine between checks of the budget */
#define MAX_STEPS    4000       /* of STEP_UNIT: about a minute, hundreds of times a report's */
#define LONGEST_TEXT (16 << 20) /* of one value, and of a row */

/* Whether the file's folder allows no new files; sets errno. */
static bool is_sealed(const char *path)
{
    const char *slash = strrchr(path, '/');
    EW_CLEANUP(ew_free_ptr)
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    return folder && access(folder, W_OK) != 0;
}

/* Why a file cannot be opened: if SQLite may not create the file or its log it tries other ways,
 * and its message is about the last of them. */
static const char *why_not_open(const char *path, int error, const char *why)
{
    return is_sealed(path) ? strerror(errno) : error ? strerror(error) : why;
}

ew_err ew_store_fail(struct ew_store *s, int rc)
{
    const int primary = rc & 0xff;
    const char *why = s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc);
    const int error = s->db ? sqlite3_system_errno(s->db) : 0;
    if (primary == SQLITE_FULL || rc == SQLITE_IOERR_SHMSIZE ||
        (primary == SQLITE_IOERR && (error == ENOSPC || error == EDQUOT || error == EFBIG))) {
        s->full = true;
        return ew_fail(EW_ERR_IO,
                       "%s: the disk is full; what was stored before is safe, and the same command "
                       "continues from it once there is room",
                       s->path);
    }
    if (rc == SQLITE_READONLY_ROLLBACK || rc == SQLITE_READONLY_RECOVERY ||
        rc == SQLITE_READONLY_CANTINIT) {
        s->unfinished = true;
        return ew_fail(EW_ERR_IO,
                       "%s: a change was interrupted, which cannot be undone where nothing may be "
                       "written",
                       s->path);
    }
    if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED)
        return ew_fail(EW_ERR_IO, "%s: another program has kept it locked for %d s", s->path,
                       WAIT_MS / 1000);
    if (primary == SQLITE_INTERRUPT)
        return ew_fail(EW_ERR_LIMIT,
                       "%s: a query was stopped after %lld million steps; ask for less (--where)",
                       s->path, (long long)s->max_steps);
    if (primary == SQLITE_NOTADB || primary == SQLITE_CORRUPT)
        return ew_fail(EW_ERR_FORMAT, "%s: not a file of results, or damaged: %s", s->path, why);
    if (primary == SQLITE_CANTOPEN)
        return ew_fail(EW_ERR_IO, "%s: %s", s->path, why_not_open(s->path, error, why));
    return ew_fail(primary == SQLITE_NOMEM ? EW_ERR_MEMORY : EW_ERR_IO, "%s: %s", s->path, why);
}

/* Limits queries by steps, not by time, so that the same query behaves the same on every
 * machine. */
static int count_steps(void *store)
{
    struct ew_store *s = store;
    return ++s->steps > s->max_steps;
}

ew_err ew_store_exec(struct ew_store *s, const char *sql)
{
    s->steps = 0;
    const int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? EW_OK : ew_store_fail(s, rc);
}

ew_err ew_store_prepare(struct ew_store *s, const char *sql, unsigned flags, sqlite3_stmt **out)
{
    const char *tail = NULL;
    s->steps = 0;
    const int rc = sqlite3_prepare_v3(s->db, sql, -1, flags, out, &tail);
    if (rc != SQLITE_OK)
        return ew_store_fail(s, rc);
    if (*out && !tail[strspn(tail, " \t\r\n")])
        return EW_OK;
    sqlite3_finalize(*out);
    *out = NULL;
    return ew_fail(EW_ERR_ARG, "%s: not exactly one statement: %.60s", s->path, sql);
}

ew_err ew_store_begin(struct ew_store *s)
{
    EW_CHECK(!s->grouped, EW_ERR_INTERNAL, "%s: transaction begun inside another", s->path);
    EW_TRY(ew_store_exec(s, "BEGIN IMMEDIATE"));
    s->grouped = true;
    return EW_OK;
}

ew_err ew_store_end(struct ew_store *s, bool keep)
{
    if (!s->grouped)
        return EW_OK;
    s->grouped = false;
    const int rc = keep ? sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) : SQLITE_OK;
    const ew_err err = rc == SQLITE_OK ? EW_OK : ew_store_fail(s, rc);
    if (!sqlite3_get_autocommit(s->db)) /* some failures have rolled back already */
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return err;
}

ew_err ew_store_settle(struct ew_store *s)
{
    const int rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return rc == SQLITE_OK ? EW_OK : ew_store_fail(s, rc);
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* Retries: if two processes create a file at the same time, switching to the write-ahead log does
 * not wait for the other. */
static ew_err set_wal(struct ew_store *s)
{
    const int64_t limit = ew_clock_ns() + WAIT_MS * (EW_NS_PER_S / 1000);
    for (;;) {
        const int rc = sqlite3_exec(s->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
        if (rc == SQLITE_OK)
            return EW_OK;
        if ((rc & 0xff) != SQLITE_BUSY || ew_clock_ns() > limit)
            return ew_store_fail(s, rc);
        usleep(5000);
    }
}

static ew_err pragma_int(struct ew_store *s, const char *sql, int64_t *out)
{
    bool found;
    EW_TRY(ew_store_int(s, out, &found, sql, ""));
    return EW_OK;
}

struct file_header {
    int64_t app, version, tables;
};

static ew_err read_header(struct ew_store *s, struct file_header *out)
{
    EW_TRY(pragma_int(s, "PRAGMA application_id", &out->app));
    EW_TRY(pragma_int(s, "PRAGMA user_version", &out->version));
    return pragma_int(s, "SELECT count(*) FROM sqlite_master", &out->tables);
}

/* Checks the application id and the schema version, in one transaction since another process may be
 * creating the file. */
static ew_err check_file(struct ew_store *s, bool *fresh, bool *older)
{
    struct file_header m = {0};
    EW_TRY(ew_store_exec(s, "SAVEPOINT look"));
    const ew_err read = read_header(s, &m);
    if (read != EW_OK) { /* which may have ended the transaction */
        sqlite3_exec(s->db, "RELEASE look", NULL, NULL, NULL);
        return read;
    }
    EW_TRY(ew_store_exec(s, "RELEASE look"));
    *fresh = m.tables == 0 && m.app == 0;
    EW_CHECK(*fresh || m.app == atoi(APPLICATION), EW_ERR_FORMAT,
             "%s: a database, but not one of Edgewise's", s->path);
    EW_CHECK(m.version <= ew_schema_version(), EW_ERR_UNSUPPORTED,
             "%s: made by a newer Edgewise (schema %lld, this one knows %d)", s->path,
             (long long)m.version, ew_schema_version());
    *older = m.version < ew_schema_version();
    return EW_OK;
}

static ew_err upgrade(struct ew_store *s)
{
    bool fresh, older;
    EW_TRY(ew_store_begin(s)); /* another process may have done it meanwhile: check again */
    ew_err err = check_file(s, &fresh, &older);
    if (err == EW_OK && fresh)
        err = ew_store_exec(s, "PRAGMA application_id = " APPLICATION);
    if (err == EW_OK && older)
        err = ew_schema_upgrade(s);
    const ew_err ended = ew_store_end(s, err == EW_OK);
    return err != EW_OK ? err : ended;
}

/* The file may be untrusted: refuses views, triggers and virtual tables, which could run code when
 * a table is read, and disables writes to SQLite's internals. */
static ew_err distrust(struct ew_store *s)
{
#ifdef SQLITE_DBCONFIG_DEFENSIVE /* 3.26 */
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
#endif
#ifdef SQLITE_DBCONFIG_ENABLE_VIEW /* 3.30 */
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
#endif
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_progress_handler(s->db, STEP_UNIT, count_steps, s);
    return ew_store_exec(s, "PRAGMA trusted_schema = OFF");
}

static ew_err check_schema(struct ew_store *s)
{
    struct ew_rows *rows;
    EW_TRY(ew_store_query(s, &rows,
                          "SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', "
                          "'index') OR sql LIKE 'CREATE VIRTUAL%' LIMIT 1",
                          ""));
    ew_err err = EW_OK;
    if (ew_rows_next(rows))
        err = ew_fail(EW_ERR_FORMAT, "%s: has a %s '%.60s', but results have only plain tables",
                      s->path, ew_rows_text(rows, 0), ew_rows_text(rows, 1));
    const ew_err read = ew_rows_free(rows);
    return err == EW_OK ? read : err;
}

/* Refuses computed columns for the same reason. */
static ew_err check_columns(struct ew_store *s)
{
    struct ew_rows *rows;
    if (sqlite3_libversion_number() < 3031000) /* older versions have no computed columns */
        return EW_OK;
    EW_TRY(ew_store_query(s, &rows,
                          "SELECT 'column', x.name FROM sqlite_master AS m, "
                          "pragma_table_xinfo(m.name) AS x WHERE m.type = 'table' AND x.hidden > 1 "
                          "UNION ALL SELECT 'index', m.name FROM sqlite_master AS m, "
                          "pragma_index_xinfo(m.name) AS x WHERE m.type = 'index' AND x.cid = -2 "
                          "LIMIT 1",
                          ""));
    ew_err err = EW_OK;
    if (ew_rows_next(rows))
        err = ew_fail(EW_ERR_FORMAT, "%s: has a computed %s '%.60s', but results have none",
                      s->path, ew_rows_text(rows, 0), ew_rows_text(rows, 1));
    const ew_err read = ew_rows_free(rows);
    return err == EW_OK ? read : err;
}

/* Marks runs whose process has ended as interrupted. */
static ew_err recover(struct ew_store *s)
{
    struct ew_rows *rows;
    EW_TRY(ew_store_query(s, &rows, "SELECT id, pid, stamp FROM run WHERE status = 'running'", ""));
    int64_t gone[256];
    int n = 0;
    while (n < (int)EW_COUNT(gone) && ew_rows_next(rows)) {
        const char *stamp = ew_rows_text(rows, 2);
        if (!stamp || !ew_process_alive((int)ew_rows_int(rows, 1), stamp))
            gone[n++] = ew_rows_int(rows, 0);
    }
    EW_TRY(ew_rows_free(rows));
    for (int i = 0; i < n; i++)
        EW_TRY(ew_store_run_end(s, gone[i], EW_RUN_INTERRUPTED, "its process is gone", NAN));
    return EW_OK;
}

static ew_err prepare_file(struct ew_store *s, const struct ew_store_opts *o)
{
    bool fresh, older;
    sqlite3_busy_timeout(s->db, WAIT_MS);
    sqlite3_extended_result_codes(s->db, 1);
    sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
    /* One step of a query may create a text of this length, which a budget of steps does not
     * limit. */
    sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, LONGEST_TEXT);
    EW_TRY(distrust(s));
    EW_TRY(check_file(s, &fresh, &older));
    EW_TRY(check_schema(s));
    EW_TRY(check_columns(s));
    if (s->read_only) {
        EW_CHECK(!older, EW_ERR_UNSUPPORTED,
                 "%s: made by an older Edgewise; 'edgewise results --db %s' brings it up to date "
                 "where it may write",
                 s->path, s->path);
        return EW_OK;
    }
    EW_TRY(set_wal(s));
    EW_TRY(ew_store_exec(s, "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON"));
    if (o->max_pages) {
        char text[64];
        snprintf(text, sizeof(text), "PRAGMA max_page_count = %lld", (long long)o->max_pages);
        EW_TRY(ew_store_exec(s, text));
    }
    if (older)
        EW_TRY(upgrade(s));
    return recover(s);
}

/* The URI of an immutable file for SQLite; release with free(). */
static char *still_name(const char *path)
{
    EW_CLEANUP(ew_free_ptr) char *real = realpath(path, NULL);
    const char head[] = "file:", tail[] = "?immutable=1";
    char *name = real ? malloc(sizeof(head) + 3 * strlen(real) + sizeof(tail)) : NULL;
    if (!name)
        return NULL;
    char *to = stpcpy(name, head);
    for (const unsigned char *c = (const unsigned char *)real; *c; c++) {
        if (isalnum(*c) || strchr("/._-", *c))
            *to++ = (char)*c;
        else
            to += sprintf(to, "%%%02X", *c);
    }
    strcpy(to, tail);
    return name;
}

/* The path as SQLite takes no other: ":memory:" and "file:x" are names of files.  Release with
 * free(). */
static char *plain_name(const char *path)
{
    char *name = malloc(strlen(path) + 3);
    if (name)
        sprintf(name, "%s%s", *path == '/' ? "" : "./", path);
    return name;
}

/* Whether to open the file as immutable: readers normally create a log beside it, which is
 * impossible on read-only media.  Not if an existing log has rows. */
static bool is_still(const char *path)
{
    return is_sealed(path) && !ew_store_has_log(path);
}

static int open_file(const char *path, int flags, bool still, sqlite3 **db)
{
    EW_CLEANUP(ew_free_ptr) char *name = still ? still_name(path) : plain_name(path);
    if (!name)
        return SQLITE_NOMEM;
    flags = still ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : flags;
    return sqlite3_open_v2(name, db, flags | SQLITE_OPEN_NOMUTEX, NULL);
}

static ew_err open_store(struct ew_store *s, const struct ew_store_opts *o, bool still)
{
    const int flags =
        o->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    const int rc = open_file(s->path, flags, still, &s->db);
    s->read_only = o->read_only || still;
    return rc == SQLITE_OK ? prepare_file(s, o) : ew_store_fail(s, rc);
}

/* Lets SQLite undo what an interrupted writer left, which a reader may not. */
static void finish(struct ew_store *s)
{
    sqlite3 *db = NULL;
    if (open_file(s->path, SQLITE_OPEN_READWRITE, false, &db) == SQLITE_OK) {
        sqlite3_busy_timeout(db, WAIT_MS);
        sqlite3_exec(db, "PRAGMA user_version", NULL, NULL, NULL);
    }
    sqlite3_close(db);
}

static ew_err reopen(struct ew_store *s, const struct ew_store_opts *o, bool still)
{
    sqlite3_close(s->db);
    s->db = NULL;
    return open_store(s, o, still);
}

ew_err ew_store_open(const char *path, const struct ew_store_opts *opts, struct ew_store **out)
{
    const struct ew_store_opts none = {0}, *o = opts ? opts : &none;
    struct stat st;
    const bool there = stat(path, &st) == 0;
    EW_CHECK(*path, EW_ERR_USAGE, "a results database has no name: is --db empty?");
    EW_CHECK(!there || S_ISREG(st.st_mode), EW_ERR_IO, "%s: is not a regular file", path);
    EW_CHECK(there || (!o->read_only && !o->existing), EW_ERR_NOT_FOUND, "%s: %s", path,
             strerror(errno));
    EW_CHECK(sqlite3_libversion_number() >= 3022000, EW_ERR_UNSUPPORTED, "SQLite %s is too old",
             sqlite3_libversion());
    EW_TRY(ew_store_check_beside(path));
    struct ew_store *s = calloc(1, sizeof(*s));
    char *name = strdup(path);
    if (!s || !name) {
        free(s);
        free(name);
        return ew_fail(EW_ERR_MEMORY, "no memory for %s", path);
    }
    const bool still = (o->read_only || o->existing) && is_still(path);
    s->path = name;
    s->max_steps = o->max_steps ? o->max_steps : MAX_STEPS;
    ew_err err = open_store(s, o, still);
    if (err != EW_OK && s->unfinished) {
        finish(s);
        err = reopen(s, o, still);
    }
    if (err != EW_OK && s->full && (o->read_only || o->existing) && !ew_store_has_log(path))
        err = reopen(s, o, true); /* as on read-only media */
    if (err != EW_OK) {
        ew_store_close(s);
        return err;
    }
    *out = s;
    return EW_OK;
}

bool ew_store_is(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    struct stat st;
    int rc = SQLITE_CANTOPEN;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) /* opening a pipe would wait for a writer */
        rc = open_file(path, SQLITE_OPEN_READONLY, is_still(path), &db);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(db, "SELECT count(*) FROM sqlite_master", -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    /* read-only: a database with a change to undo */
    const bool is = (rc == SQLITE_ROW && sqlite3_column_int(q, 0) > 0) || rc == SQLITE_READONLY;
    sqlite3_finalize(q);
    sqlite3_close(db);
    return is;
}

void ew_store_close(struct ew_store *s)
{
    if (!s)
        return;
    for (int i = 0; i < EW_RECORD_N; i++)
        sqlite3_finalize(s->put[i]);
    sqlite3_close(s->db);
    free(s->path);
    free(s);
}

const char *ew_store_path(const struct ew_store *s)
{
    return s->path;
}
