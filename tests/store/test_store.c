/* SPDX-License-Identifier: Apache-2.0 */
/* The store: round trips of rows, schema upgrades of old files, rejection of newer and foreign
 * ones, read-only conditions, copies without duplicates. */
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ew_test.h"
#include "store/store_impl.h"
#include "store_kit.h"

static void close_store(struct ew_store **s)
{
    ew_store_close(*s);
}
#define STORE EW_CLEANUP(close_store) struct ew_store

static void rows_come_back(void)
{
    STORE *s = NULL;
    if (!EW_EXPECT_OK(ew_store_open(ew_test_path("back.db"), NULL, &s)))
        return;
    const int64_t run = kit_begin(s, 2);
    EW_EXPECT(run > 0);
    EW_EXPECT_OK(kit_epoch(s, run, 0, 1.5));
    EW_EXPECT_OK(kit_epoch(s, run, 0, 2.5)); /* the same key replaces the row */
    EW_EXPECT_OK(kit_epoch(s, run, 1, 0));

    struct ew_rows *rows;
    struct ew_arena a;
    ew_arena_init(&a);
    EW_EXPECT_OK(
        ew_store_query(s, &rows, "SELECT * FROM epoch WHERE run = ?1 ORDER BY epoch", "i", run));
    struct ew_epoch_row e;
    EW_EXPECT(ew_rows_next(rows));
    EW_EXPECT_OK(ew_rows_read(rows, EW_RECORD_EPOCH, &a, &e));
    EW_EXPECT_NEAR(e.wall_s, 2.5, 0);
    EW_EXPECT(isnan(e.stall_s)); /* absent is not zero */
    EW_EXPECT_INT(e.read_bytes, EW_INT_ABSENT);
    EW_EXPECT_INT(e.quality, EW_QUALITY_MEASURED);
    EW_EXPECT(ew_rows_next(rows));
    EW_EXPECT_OK(ew_rows_read(rows, EW_RECORD_EPOCH, &a, &e));
    EW_EXPECT_NEAR(e.wall_s, 0, 0); /* and zero is not absent */
    EW_EXPECT(!ew_rows_next(rows));
    EW_EXPECT_OK(ew_rows_free(rows));
    ew_arena_fini(&a);

    EW_EXPECT_OK(ew_store_run_end(s, run, EW_RUN_FAILED, "no memory", 3));
    EW_EXPECT_INT(kit_int(s, "SELECT 1 FROM run WHERE status = 'failed' AND reason = 'no memory' "
                             "AND wall_s = 3.0 AND study = 'kit' AND length(uid) = 32"),
                  1);
}

/* Checking whether a file is a store must not drop this process's locks on it (POSIX locks are
 * dropped when any descriptor of the file is closed): another connection still finds it busy. */
static void looking_keeps_locks(void)
{
    STORE *s = NULL;
    const char *path = ew_test_path("look.db");
    sqlite3 *other = NULL;
    if (!EW_EXPECT_OK(ew_store_open(path, NULL, &s)))
        return;
    EW_EXPECT(kit_begin(s, 1) > 0);
    EW_EXPECT(ew_store_is(path));
    EW_EXPECT(!ew_store_is("tests/store/test_store.c") && !ew_store_is(ew_test_path("none.db")));
    EW_EXPECT_OK(ew_store_begin(s));
    EW_EXPECT_OK(kit_epoch(s, 1, 7, 1.5));
    EW_EXPECT(ew_store_is(path));
    EW_EXPECT_INT(sqlite3_open(path, &other), SQLITE_OK);
    EW_EXPECT_INT(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_BUSY);
    sqlite3_close(other);
    EW_EXPECT_OK(ew_store_end(s, true));
}

static void groups_come_whole_or_not(void)
{
    STORE *s = NULL;
    if (!EW_EXPECT_OK(ew_store_open(ew_test_path("group.db"), NULL, &s)))
        return;
    const int64_t run = kit_begin(s, 2);
    EW_EXPECT_OK(ew_store_begin(s));
    EW_EXPECT_OK(kit_epoch(s, run, 0, 1));
    EW_EXPECT_OK(kit_epoch(s, run, 1, 1));
    EW_EXPECT_OK(ew_store_end(s, false));
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM epoch"), 0);
    EW_EXPECT_OK(ew_store_begin(s));
    EW_EXPECT_OK(kit_epoch(s, run, 0, 1));
    EW_EXPECT_OK(ew_store_end(s, true));
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM epoch"), 1);
    EW_EXPECT_OK(ew_store_run_delete(s, run));
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM epoch"), 0);
}

/* Executes SQL on a file, as another program would. */
static void alter(const char *path, const char *sql)
{
    sqlite3 *db;
    char *message = NULL;
    EW_EXPECT_INT(sqlite3_open(path, &db), SQLITE_OK);
    if (!EW_EXPECT_INT(sqlite3_exec(db, sql, NULL, NULL, &message), SQLITE_OK))
        EW_FAIL("%s: %s", sql, message);
    sqlite3_free(message);
    sqlite3_close(db);
}

/* A file that lacks a field and a table: both are added, its contents are kept. */
static void old_files_are_widened(void)
{
    const char *path = ew_test_path("old.db");
    STORE *s = NULL;
    EW_EXPECT_OK(ew_store_open(path, NULL, &s));
    const int64_t run = kit_begin(s, 2);
    EW_EXPECT_OK(kit_epoch(s, run, 0, 1));
    EW_EXPECT_OK(ew_store_run_end(s, run, EW_RUN_DONE, NULL, 1));
    ew_store_close(s);
    s = NULL;
    alter(path, "ALTER TABLE epoch DROP COLUMN stall_s; DROP TABLE published; "
                "PRAGMA user_version = 10001");

    EW_EXPECT_ERR(ew_store_open(path, &(struct ew_store_opts){.read_only = true}, &s),
                  EW_ERR_UNSUPPORTED, "older Edgewise");
    if (!EW_EXPECT_OK(ew_store_open(path, NULL, &s)))
        return;
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM epoch WHERE stall_s IS NULL"), 1);
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM published"), 0);
    EW_EXPECT_INT(kit_int(s, "PRAGMA user_version"), ew_schema_version());
}

static void newer_and_foreign_files_are_refused(void)
{
    const char *path = ew_test_path("newer.db");
    struct ew_store *s = NULL;
    EW_EXPECT_OK(ew_store_open(path, NULL, &s));
    ew_store_close(s);
    alter(path, "PRAGMA user_version = 99999");
    EW_EXPECT_ERR(ew_store_open(path, NULL, &s), EW_ERR_UNSUPPORTED, "made by a newer Edgewise");

    const char *other = ew_test_path("other.db");
    alter(other, "CREATE TABLE things(a)");
    EW_EXPECT_ERR(ew_store_open(other, NULL, &s), EW_ERR_FORMAT, "not one of Edgewise's");

    const char *text = ew_test_file("text.db",
                                    "just some text, long enough to be read as a page "
                                    "header of a database, which it is not at all ....",
                                    95);
    EW_EXPECT_ERR(ew_store_open(text, NULL, &s), EW_ERR_FORMAT, "not a file of results");
    EW_EXPECT_ERR(
        ew_store_open(ew_test_path("none.db"), &(struct ew_store_opts){.existing = true}, &s),
        EW_ERR_NOT_FOUND, "none.db");
    EW_EXPECT_ERR(ew_store_open(ew_test_path("no/such/folder.db"), NULL, &s), EW_ERR_IO,
                  "folder.db");
}

/* Malicious files: an endless view in the place of a table, a trigger, a value that is not in its
 * enumeration. */
static void hostile_files_are_refused(void)
{
    const char *path = ew_test_path("hostile.db");
    struct ew_store *s = NULL;
    EW_EXPECT_OK(ew_store_open(path, NULL, &s));
    EW_EXPECT(kit_begin(s, 1) > 0);
    ew_store_close(s);
    alter(path, "CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
                "FROM n) SELECT i FROM n");
    EW_EXPECT_ERR(ew_store_open(path, NULL, &s), EW_ERR_FORMAT, "has a view 'endless'");
    EW_EXPECT_ERR(ew_store_open(path, &(struct ew_store_opts){.read_only = true}, &s),
                  EW_ERR_FORMAT, "has a view 'endless'");
    alter(path,
          "DROP VIEW endless; CREATE TRIGGER t AFTER INSERT ON job BEGIN DELETE FROM run; END");
    EW_EXPECT_ERR(ew_store_open(path, NULL, &s), EW_ERR_FORMAT, "has a trigger 't'");
    /* Expressions computed when a row is read: each allocates gigabytes in one step of the
     * query. */
    alter(path, "DROP TRIGGER t; CREATE INDEX big ON run(length(printf('%.*c', 1000, 'x')) + id)");
    EW_EXPECT_ERR(ew_store_open(path, NULL, &s), EW_ERR_FORMAT, "has a computed index 'big'");
    alter(path, "DROP INDEX big; ALTER TABLE sample ADD COLUMN huge TEXT GENERATED ALWAYS AS "
                "(printf('%.*c', 900000000, 'x'))");
    EW_EXPECT_ERR(ew_store_open(path, NULL, &s), EW_ERR_FORMAT, "has a computed column 'huge'");
    alter(path, "ALTER TABLE sample DROP COLUMN huge; UPDATE run SET quality = 'invented'");
    struct ew_rows *rows;
    struct ew_run_row run;
    struct ew_arena a;
    ew_arena_init(&a);
    EW_EXPECT_OK(ew_store_open(path, NULL, &s));
    EW_EXPECT_OK(ew_store_query(s, &rows, "SELECT hex(zeroblob(900000000))", ""));
    EW_EXPECT(!ew_rows_next(rows));
    EW_EXPECT_ERR(ew_rows_free(rows), EW_ERR_IO, "too big");
    EW_EXPECT_OK(ew_store_query(s, &rows, "SELECT * FROM run", ""));
    EW_EXPECT(ew_rows_next(rows));
    EW_EXPECT_ERR(ew_rows_read(rows, EW_RECORD_RUN, &a, &run), EW_ERR_FORMAT,
                  "hostile.db: a row 'run' of run 1");
    ew_rows_free(rows);
    ew_store_close(s);
    ew_arena_fini(&a);
}

/* Conditions may be slow, up to a limit. */
/* Copies the file to `to`, appended by `n` bytes. */
static void copy_file(const char *from, const char *to, const void *more, size_t n)
{
    char *data = NULL;
    size_t size = 0;
    EW_EXPECT_OK(ew_file_read(from, (size_t)64 << 20, &data, &size));
    FILE *f = fopen(to, "wb");
    if (EW_EXPECT(f)) {
        EW_EXPECT(fwrite(data, 1, size, f) == size && fwrite(more, 1, n, f) == n);
        fclose(f);
    }
    free(data);
}

/* Makes `path` a store whose writer was killed while it changed the study of its runs: half of that
 * is in the file, the old pages are in the journal.  `more` is appended to the journal. */
static void make_unfinished(const char *path, const void *more, size_t n)
{
    char journal[4096], from[4096];
    const char *whole = ew_test_path("whole.db");
    STORE *s = NULL;
    sqlite3 *db = NULL;
    unlink(whole);
    EW_EXPECT_OK(ew_store_open(whole, NULL, &s));
    for (int i = 0; i < 300; i++)
        EW_EXPECT(kit_begin(s, i) > 0);
    ew_store_close(s);
    s = NULL;
    EW_EXPECT_INT(sqlite3_open(whole, &db), SQLITE_OK);
    EW_EXPECT_INT(sqlite3_exec(db,
                               "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN; "
                               "UPDATE run SET study = 'changed'; UPDATE job SET command = 'x'",
                               NULL, NULL, NULL),
                  SQLITE_OK);
    snprintf(journal, sizeof(journal), "%s-journal", path);
    snprintf(from, sizeof(from), "%s-journal", whole);
    copy_file(whole, path, "", 0);
    copy_file(from, journal, more, n);
    sqlite3_close(db);
}

/* Regression: a store could be read only after a writer had opened it. */
static void interrupted_changes_are_undone_for_readers(void)
{
    const char *path = ew_test_path("hot.db");
    STORE *s = NULL;
    make_unfinished(path, "", 0);
    EW_EXPECT(ew_store_is(path));
    if (!EW_EXPECT_OK(ew_store_open(path, &(struct ew_store_opts){.read_only = true}, &s)))
        return;
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM run WHERE study = 'kit'"), 300);
}

/* Security regression: the end of a journal names another file, and whoever undid the change
 * deleted that. */
static void journals_delete_nothing(void)
{
    const char *path = ew_test_path("trap.db"), *victim = ew_test_path("victim");
    unsigned char end[4096] = {0}, *at = end + 4;
    const size_t n = strlen(victim);
    uint32_t sum = 0;
    struct ew_store *s = NULL;
    const int page = 4096, mark = 0x40000000 / page + 1;
    for (int i = 0; i < 4; i++)
        end[i] = (unsigned char)(mark >> (24 - 8 * i));
    for (size_t i = 0; i < n; i++)
        sum += (unsigned char)(*at++ = (unsigned char)victim[i]);
    for (int i = 0; i < 4; i++, at++) {
        at[0] = (unsigned char)(n >> (24 - 8 * i));
        at[4] = (unsigned char)(sum >> (24 - 8 * i));
    }
    memcpy(at + 4, "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8);
    EW_EXPECT_OK(ew_file_write(victim, "mine", 4));
    make_unfinished(path, end, (size_t)(at + 12 - end));
    EW_EXPECT_ERR(ew_store_open(path, NULL, &s), EW_ERR_FORMAT, "names another file");
    EW_EXPECT_ERR(ew_store_open(path, &(struct ew_store_opts){.read_only = true}, &s),
                  EW_ERR_FORMAT, "names another file");
    EW_EXPECT_INT(access(victim, F_OK), 0);

    char log[4096];
    path = ew_test_path("linked.db");
    EW_EXPECT_OK(ew_store_open(path, NULL, &s));
    ew_store_close(s);
    snprintf(log, sizeof(log), "%s-wal", path);
    EW_EXPECT_INT(symlink(victim, log), 0);
    EW_EXPECT_ERR(ew_store_open(path, NULL, &s), EW_ERR_IO, "is no plain file");
}

static void queries_have_a_bound(void)
{
    struct ew_store *s = NULL;
    struct ew_rows *rows;
    EW_EXPECT_OK(
        ew_store_open(ew_test_path("slow.db"), &(struct ew_store_opts){.max_steps = 3}, &s));
    const int64_t run = kit_begin(s, 1);
    EW_EXPECT_OK(ew_store_begin(s));
    for (int i = 0; i < 300; i++)
        EW_EXPECT_OK(kit_epoch(s, run, i, 1));
    EW_EXPECT_OK(ew_store_end(s, true));
    EW_EXPECT_OK(ew_store_results(
        s,
        "(SELECT count(*) FROM epoch a, epoch b, epoch c WHERE a.wall_s + b.wall_s > c.epoch) > 0",
        NULL, &rows));
    EW_EXPECT(!ew_rows_next(rows));
    EW_EXPECT_ERR(ew_rows_free(rows), EW_ERR_LIMIT, "stopped after 3 million steps");
    EW_EXPECT_OK(ew_store_results(s, "(SELECT count(*) FROM epoch) = 300", NULL, &rows));
    EW_EXPECT(ew_rows_next(rows)); /* the limit is per statement */
    EW_EXPECT_OK(ew_rows_free(rows));
    ew_store_close(s);
}

static void tables_are_strict(void)
{
    if (sqlite3_libversion_number() < 3037000)
        EW_SKIP("SQLite %s has no strict tables", sqlite3_libversion());
    STORE *s = NULL;
    EW_EXPECT_OK(ew_store_open(ew_test_path("strict.db"), NULL, &s));
    EW_EXPECT_ERR(ew_store_exec(s, "INSERT INTO epoch(run, epoch) VALUES(1, 'three')"), EW_ERR_IO,
                  "TEXT");
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'"),
                  1);
}

static void same_hash_other_options(void)
{
    STORE *s = NULL;
    EW_EXPECT_OK(ew_store_open(ew_test_path("hash.db"), NULL, &s));
    struct ew_job_row j;
    ew_record_clear(EW_RECORD_JOB, &j);
    j.id = "0123456789abcdef";
    j.options = "{\"a\":1}";
    EW_EXPECT_OK(ew_store_put(s, EW_RECORD_JOB, 0, &j));
    EW_EXPECT_OK(ew_store_put(s, EW_RECORD_JOB, 0, &j));
    j.options = "{\"a\":2}";
    EW_EXPECT_ERR(ew_store_put(s, EW_RECORD_JOB, 0, &j), EW_ERR_INTERNAL, "two jobs");
    j.id = "0123456789abcde0";
    j.options = "a = 2";
    EW_EXPECT_ERR(ew_store_put(s, EW_RECORD_JOB, 0, &j), EW_ERR_FORMAT, "no JSON");
}

/* ---- Conditions ------------------------------------------------------------------------------ */

static int count_where(struct ew_store *s, const char *where)
{
    struct ew_rows *rows;
    if (ew_store_results(s, where, NULL, &rows) != EW_OK)
        return -1;
    int n = 0;
    while (ew_rows_next(rows))
        n++;
    return ew_rows_free(rows) == EW_OK ? n : -2;
}

static struct ew_store *three_runs(const char *name)
{
    struct ew_store *s = NULL;
    EW_EXPECT_OK(ew_store_open(ew_test_path(name), NULL, &s));
    for (int i = 0; s && i < 3; i++) {
        const int64_t run = kit_begin(s, i);
        EW_EXPECT_OK(kit_epoch(s, run, 0, i));
        EW_EXPECT_OK(kit_metric(s, run, "epoch_s", 10 * i));
        EW_EXPECT_OK(ew_store_run_end(s, run, EW_RUN_DONE, NULL, 1 + i));
    }
    return s;
}

static void conditions_see_everything(void)
{
    STORE *s = three_runs("where.db");
    EW_EXPECT_INT(count_where(s, NULL), 3);
    EW_EXPECT_INT(count_where(s, "workers >= 1"), 2);
    EW_EXPECT_INT(count_where(s, "power_mode = 'a' and epoch_s > 5 and wall_s < 3"), 1);
    EW_EXPECT_INT(count_where(s, "network like 'lenet%' and machine_board = 'Test board'"), 3);
    EW_EXPECT_INT(count_where(s, "study = 'a;b)--'"), 0);
    EW_EXPECT_INT(count_where(s, "id in (select run from epoch where wall_s >= 1)"), 2);
}

/* The thousand metrics of a confusion matrix are not columns. */
static void matrices_are_no_columns(void)
{
    STORE *s = three_runs("matrix.db");
    struct ew_rows *rows;
    for (int i = 0; i < 1200; i++) {
        char name[64];
        snprintf(name, sizeof(name), "confusion:%d:%d", i / 40, i % 40);
        EW_EXPECT_OK(kit_metric(s, 1, name, i));
    }
    if (!EW_EXPECT_OK(ew_store_results(s, NULL, NULL, &rows)))
        return;
    EW_EXPECT(ew_rows_find(rows, "epoch_s") > 0);
    EW_EXPECT_INT(ew_rows_find(rows, "confusion_1_1"), -1);
    EW_EXPECT_OK(ew_rows_free(rows));
}

static void conditions_only_read(void)
{
    STORE *s = three_runs("safe.db");
    static const char *const bad[] = {
        "1; DROP TABLE run",
        "1) UNION SELECT * FROM job WHERE (1",
        "1 -- and",
        "workers >",
        "nosuch = 1",
        "load_extension('x')",
        "'open",
        "",
        "1 /* */",
        "(1",
        "id in (delete from run)",
    };
    for (size_t i = 0; i < EW_COUNT(bad); i++)
        if (!EW_EXPECT_INT(count_where(s, bad[i]), -1))
            EW_FAIL("allowed: %s", bad[i]);
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM run"), 3);
    struct ew_rows *rows;
    EW_EXPECT_ERR(ew_store_results(s, "wrokers = 1", NULL, &rows), EW_ERR_USAGE, "wrokers");
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static void copies_are_made_once(void)
{
    STORE *from = three_runs("from.db");
    STORE *to = three_runs("to.db");
    int n = -1;
    const int64_t unfinished = kit_begin(from, 9);
    EW_EXPECT(unfinished > 0);
    EW_EXPECT_OK(ew_store_copy(from, to, "workers > 0", &n));
    EW_EXPECT_INT(n, 2);
    EW_EXPECT_OK(ew_store_copy(from, to, NULL, &n));
    EW_EXPECT_INT(n, 1);
    EW_EXPECT_OK(ew_store_copy(from, to, NULL, &n));
    EW_EXPECT_INT(n, 0);
    EW_EXPECT_INT(kit_int(to, "SELECT count(*) FROM run"), 6);
    EW_EXPECT_INT(kit_int(to, "SELECT count(*) FROM epoch"), 6);
    EW_EXPECT_INT(kit_int(to, "SELECT count(*) FROM job"), 3);
    EW_EXPECT_INT(kit_int(to, "SELECT sum(value) FROM metric"), 60);
    EW_EXPECT_OK(ew_store_copy(to, from, NULL, &n));
    EW_EXPECT_INT(n, 3);
}

/* A run without a uid, which Edgewise does not write, keeps no other from being copied. */
static void runs_without_uid_are_left_out(void)
{
    STORE *from = three_runs("unnamed.db");
    alter(ew_test_path("unnamed.db"), "UPDATE run SET uid = 'x' WHERE id = 1");
    STORE *to = NULL;
    EW_EXPECT_OK(ew_store_open(ew_test_path("named.db"), NULL, &to));
    int n = -1;
    EW_EXPECT_OK(ew_store_copy(from, to, NULL, &n));
    EW_EXPECT_INT(n, 2);
}

static void runs_are_found(void)
{
    STORE *s = three_runs("find.db");
    int64_t run = 0;
    EW_EXPECT_OK(ew_store_run_find(s, "2", &run));
    EW_EXPECT_INT(run, 2);
    struct ew_rows *rows;
    char uid[EW_RUN_UID_CHARS] = "";
    EW_EXPECT_OK(ew_store_query(s, &rows, "SELECT uid FROM run WHERE id = 3", ""));
    if (ew_rows_next(rows))
        snprintf(uid, sizeof(uid), "%s", ew_rows_text(rows, 0));
    EW_EXPECT_OK(ew_rows_free(rows));
    EW_EXPECT_OK(ew_store_run_find(s, uid, &run));
    EW_EXPECT_INT(run, 3);
    EW_EXPECT_ERR(ew_store_run_find(s, "99", &run), EW_ERR_NOT_FOUND, "no run '99'");
    EW_EXPECT_ERR(ew_store_run_find(s, "", &run), EW_ERR_NOT_FOUND, "no run");
}

/* ---- Full disk ------------------------------------------------------------------------------- */

static void a_full_disk_leaves_the_file_whole(void)
{
    const char *path = ew_test_path("full.db");
    STORE *s = NULL;
    EW_EXPECT_OK(ew_store_open(path, &(struct ew_store_opts){.max_pages = 60}, &s));
    const int64_t run = kit_begin(s, 1);
    EW_EXPECT_OK(kit_epoch(s, run, 0, 1));
    EW_EXPECT_OK(ew_store_begin(s));
    ew_err err = EW_OK;
    int64_t n = 0;
    while (err == EW_OK && n < 100000)
        err = kit_epoch(s, run, ++n, 1);
    EW_EXPECT_ERR(err, EW_ERR_IO, "the disk is full");
    EW_EXPECT_OK(ew_store_end(s, false));
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM epoch"), 1);
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM pragma_integrity_check "
                             "WHERE integrity_check = 'ok'"),
                  1);
    ew_store_close(s);
    s = NULL;
    EW_EXPECT_OK(ew_store_open(path, NULL, &s)); /* with space again it continues */
    EW_EXPECT_OK(kit_epoch(s, run, 1, 1));
}

EW_TEST_MAIN(EW_TEST(rows_come_back), EW_TEST(looking_keeps_locks),
             EW_TEST(groups_come_whole_or_not), EW_TEST(old_files_are_widened),
             EW_TEST(newer_and_foreign_files_are_refused), EW_TEST(hostile_files_are_refused),
             EW_TEST(interrupted_changes_are_undone_for_readers), EW_TEST(journals_delete_nothing),
             EW_TEST(queries_have_a_bound), EW_TEST(tables_are_strict),
             EW_TEST(same_hash_other_options), EW_TEST(conditions_see_everything),
             EW_TEST(conditions_only_read), EW_TEST(matrices_are_no_columns),
             EW_TEST(copies_are_made_once), EW_TEST(runs_without_uid_are_left_out),
             EW_TEST(runs_are_found), EW_TEST(a_full_disk_leaves_the_file_whole))
