/* SPDX-License-Identifier: Apache-2.0 */
/* Running studies with a small script instead of edgewise: what is recorded, what is skipped, and
 * that kills lose nothing. */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "ew_test.h"
#include "study/runner.h"
#include "study_kit.h"

#define HEAD "[study]\norder = file\n[defaults]\ncommand = work\n"

/* A program that executes `body` and then appends its arguments to the file `log`. */
static const char *make_program(const char *name, const char *body, const char *log)
{
    char text[1024];
    const int n = snprintf(text, sizeof(text), "#!/bin/sh\n%s\necho \"$*\" >> %s\n", body, log);
    const char *path = ew_test_file(name, text, (size_t)n);
    chmod(path, 0755);
    return path;
}

static ew_err run_all(const struct ew_study *s, const struct ew_runner_opts *o,
                      struct ew_runner_counts *counts)
{
    struct ew_runner *r;
    struct ew_runner_report report;
    EW_TRY(ew_runner_open(s, o, &r));
    ew_err err;
    do
        err = ew_runner_step(r, &report);
    while (err == EW_OK && report.event != EW_RUNNER_END);
    *counts = ew_runner_counts(r);
    ew_runner_close(r);
    return err;
}

static int64_t count(const char *db, const char *sql)
{
    struct ew_store *s = NULL;
    int64_t v = -1;
    bool found;
    if (EW_EXPECT_OK(ew_store_open(db, NULL, &s)))
        EW_EXPECT_OK(ew_store_int(s, &v, &found, sql, ""));
    ew_store_close(s);
    return v;
}

static int lines_of(const char *path)
{
    FILE *f = fopen(path, "r");
    int n = 0, c;
    while (f && (c = getc(f)) != EOF)
        n += c == '\n';
    if (f)
        fclose(f);
    return n;
}

static struct ew_runner_opts options(const char *program, const char *db)
{
    return (struct ew_runner_opts){
        .program = program, .db = db, .limits = {.busy = 2}, .least_disk_bytes = 1};
}

/* Each run is sampled once: by the study, or by a command that samples the board itself. */
static void runs_are_sampled_once(void)
{
    for (int own = 0; own < 2; own++) {
        struct ew_arena a;
        struct ew_study s;
        struct ew_runner_counts c;
        char db[256], log[256];
        ew_arena_init(&a);
        snprintf(db, sizeof(db), "%s", ew_test_path(own ? "own.db" : "ours.db"));
        snprintf(log, sizeof(log), "%s", ew_test_path("sampled.log"));
        const struct ew_runner_opts o = options(make_program("sampled.sh", "sleep 0.6", log), db);
        EW_EXPECT_OK(kit_parse(&a, HEAD "[a]\nnetwork = n\nworkers = 0\n", false, NULL, &s));
        s.repeat = 1;
        s.jobs[0].samples = own;
        EW_EXPECT_OK(run_all(&s, &o, &c));
        EW_EXPECT_INT(c.done, 1);
        const int64_t n = count(db, "SELECT count(*) FROM sample WHERE channel = 'mem.used'");
        EW_EXPECT(own ? n == 0 : n >= 2);
        ew_arena_fini(&a);
    }
}

static void jobs_are_run_once(void)
{
    struct ew_arena a;
    struct ew_study s;
    struct ew_runner_counts c;
    char db[256], log[256];
    ew_arena_init(&a);
    snprintf(db, sizeof(db), "%s", ew_test_path("once.db"));
    snprintf(log, sizeof(log), "%s", ew_test_path("once.log"));
    const struct ew_runner_opts o = options(make_program("once.sh", "", log), db);
    EW_EXPECT_OK(kit_parse(&a, HEAD "[a]\nnetwork = n\nworkers = 0 1 2\n", false, NULL, &s));
    s.repeat = 1;
    EW_EXPECT_OK(run_all(&s, &o, &c));
    EW_EXPECT_INT(c.done, 3);
    EW_EXPECT_INT(lines_of(log), 3);
    EW_EXPECT_OK(run_all(&s, &o, &c));
    EW_EXPECT_INT(c.known, 3);
    EW_EXPECT_INT(c.done, 0);
    EW_EXPECT_INT(lines_of(log), 3);
    EW_EXPECT_INT(count(db, "SELECT count(*) FROM run WHERE status = 'done' AND study = 'kit' AND "
                            "label = 'a'"),
                  3);
    EW_EXPECT_INT(count(db, "SELECT done FROM study WHERE name = 'kit'"), 3);

    /* An extended sweep runs only its new jobs, in any order. */
    EW_EXPECT_OK(kit_parse(&a, HEAD "[a]\nnetwork = n\nworkers = 3 2 1 0\n", false, NULL, &s));
    EW_EXPECT_OK(run_all(&s, &o, &c));
    EW_EXPECT_INT(c.known, 3);
    EW_EXPECT_INT(c.done, 1);
    ew_arena_fini(&a);
}

/* Regression: a job that hangs blocked its study forever. */
static void jobs_have_a_limit(void)
{
    struct ew_arena a;
    struct ew_study s;
    struct ew_runner_counts c;
    char db[256], log[256];
    ew_arena_init(&a);
    snprintf(db, sizeof(db), "%s", ew_test_path("late.db"));
    snprintf(log, sizeof(log), "%s", ew_test_path("late.log"));
    const struct ew_runner_opts o = options(
        make_program("late.sh", "case \"$*\" in *workers=1*) exec sleep 600;; esac", log), db);
    EW_EXPECT_OK(kit_parse(&a,
                           "[study]\norder = file\njob-timeout = 3600\n[defaults]\ncommand = work\n"
                           "[a]\nnetwork = n\nworkers = 1\njob-timeout = 0.2\n"
                           "[b]\nnetwork = n\nworkers = 2\n",
                           false, NULL, &s));
    s.repeat = 1;
    EW_EXPECT_OK(run_all(&s, &o, &c));
    EW_EXPECT_INT(c.failed, 1);
    EW_EXPECT_INT(c.done, 1);
    EW_EXPECT_INT(count(db, "SELECT count(*) FROM run WHERE status = 'failed' AND reason LIKE "
                            "'took longer than its job-timeout and was ended after %'"),
                  1);
    EW_EXPECT_INT(count(db, "SELECT count(*) FROM job WHERE options LIKE '%timeout%'"), 0);
    EW_EXPECT_ERR(kit_parse(&a, HEAD "[a]\nnetwork = n\njob-timeout = soon\n", false, NULL, &s),
                  EW_ERR_FORMAT, "job-timeout 'soon' is not a number of seconds");
    EW_EXPECT_ERR(kit_parse(&a, HEAD "[a]\nnetwork = n\ncool-down = -1\n", false, NULL, &s),
                  EW_ERR_FORMAT, "cool-down '-1' is not a number of seconds");
    ew_arena_fini(&a);
}

static void failures_are_recorded(void)
{
    struct ew_arena a;
    struct ew_study s;
    struct ew_runner_counts c;
    char db[256], log[256];
    ew_arena_init(&a);
    snprintf(db, sizeof(db), "%s", ew_test_path("fail.db"));
    snprintf(log, sizeof(log), "%s", ew_test_path("fail.log"));
    const struct ew_runner_opts o = options(
        make_program(
            "fail.sh",
            "case \"$*\" in\n"
            "*workers=1*) echo 'edgewise: no data at all' >&2; echo 'hint: x' >&2; exit 1;;\n"
            "*workers=2*) kill -9 $$;;\n"
            "*workers=3*) exit 5;;\nesac",
            log),
        db);
    EW_EXPECT_OK(kit_parse(&a,
                           HEAD "[a]\nnetwork = n\nworkers = 0 1 2 3 4\n[b]\nnetwork = n\n"
                                "power-mode = NO_SUCH\n",
                           false, NULL, &s));
    for (int i = 0; i < 2; i++) { /* failures are repeated, skipped jobs are in the results once */
        EW_EXPECT_OK(run_all(&s, &o, &c));
        EW_EXPECT_INT(c.failed, 3);
        EW_EXPECT_INT(c.skipped, 1);
        EW_EXPECT_INT(c.done + c.known, 2);
        EW_EXPECT_INT(lines_of(log), 2);
    }
    EW_EXPECT_INT(count(db, "SELECT count(*) FROM run WHERE reason = 'no data at all'"), 2);
    EW_EXPECT_INT(count(db, "SELECT count(*) FROM run WHERE reason LIKE 'ended by signal 9%'"), 2);
    EW_EXPECT_INT(count(db, "SELECT count(*) FROM run WHERE reason = 'exit status 5'"), 2);
    EW_EXPECT_INT(count(db, "SELECT count(*) FROM run WHERE status = 'skipped'"), 1);
    ew_arena_fini(&a);
}

/* Regression: two processes ran one study with one store, and each removed the other's folders. */
static void one_process_at_a_time(void)
{
    struct ew_arena a;
    struct ew_study s;
    struct ew_runner_counts c;
    char db[256], log[256];
    int started[2], end[2];
    ew_arena_init(&a);
    snprintf(db, sizeof(db), "%s", ew_test_path("lock.db"));
    snprintf(log, sizeof(log), "%s", ew_test_path("lock.log"));
    const struct ew_runner_opts o = options(make_program("lock.sh", "", log), db);
    EW_EXPECT_OK(kit_parse(&a, HEAD "[a]\nnetwork = n\nworkers = 0 1\n", false, NULL, &s));
    if (!EW_EXPECT(pipe(started) == 0 && pipe(end) == 0))
        return;
    const pid_t pid = fork();
    if (pid == 0) { /* holds the study until `end` closes */
        struct ew_runner *r;
        char ok = ew_runner_open(&s, &o, &r) == EW_OK ? 'y' : 'n';
        close(end[1]);
        (void)!write(started[1], &ok, 1);
        (void)!read(end[0], &ok, 1);
        _exit(0);
    }
    char ok = 0, want[32];
    close(end[0]);
    EW_EXPECT_INT(read(started[0], &ok, 1), 1);
    EW_EXPECT_INT(ok, 'y');
    snprintf(want, sizeof(want), "process %d is running", (int)pid);
    EW_EXPECT_ERR(run_all(&s, &o, &c), EW_ERR_IO, want);
    EW_EXPECT_INT(lines_of(log), 0);
    close(end[1]);
    waitpid(pid, NULL, 0);
    EW_EXPECT_OK(run_all(&s, &o, &c)); /* the holder is gone, whatever its row says */
    EW_EXPECT_INT(c.done, 2);
    close(started[0]);
    close(started[1]);
    ew_arena_fini(&a);
}

/* The program gets the store and the run, and none of our environment that would change its
 * behaviour. */
static void children_know_their_run(void)
{
    struct ew_arena a;
    struct ew_study s;
    struct ew_runner_counts c;
    char db[256], log[256], line[512] = "", want[512];
    ew_arena_init(&a);
    snprintf(db, sizeof(db), "%s", ew_test_path("know.db"));
    snprintf(log, sizeof(log), "%s", ew_test_path("know.log"));
    const struct ew_runner_opts o =
        options(make_program("know.sh", "set -- \"$@\" ${#EW_RUN}", log), db);
    EW_EXPECT_OK(kit_parse(&a, HEAD "[a]\nnetwork = n\nworkers = 4\n", false, NULL, &s));
    EW_EXPECT_OK(run_all(&s, &o, &c));
    FILE *f = fopen(log, "r");
    if (EW_EXPECT(f != NULL)) {
        EW_EXPECT(fgets(line, sizeof(line), f) != NULL);
        fclose(f);
    }
    snprintf(want, sizeof(want), "work n --workers=4 --db=%s 32\n", db);
    EW_EXPECT_STR(line, want);
    ew_arena_fini(&a);
}

static void noisy_runs_are_marked_and_repeated(void)
{
    struct ew_arena a;
    struct ew_study s;
    struct ew_runner_counts c;
    char db[256], log[256];
    ew_arena_init(&a);
    snprintf(db, sizeof(db), "%s", ew_test_path("noisy.db"));
    snprintf(log, sizeof(log), "%s", ew_test_path("noisy.log"));
    struct ew_runner_opts o = options(make_program("noisy.sh", "sleep 0.25", log), db);
    o.limits.busy = -1; /* no machine is that idle */
    o.look_s = 0.02;
    o.repeat_noisy = 1;
    EW_EXPECT_OK(kit_parse(&a, HEAD "[a]\nnetwork = n\n", false, NULL, &s));
    EW_EXPECT_OK(run_all(&s, &o, &c));
    EW_EXPECT_INT(c.done, 1);
    EW_EXPECT_INT(lines_of(log), 2);
    EW_EXPECT_INT(count(db, "SELECT count(*) FROM run WHERE status = 'noisy' AND noise LIKE "
                            "'%of the CPU%'"),
                  1);
    EW_EXPECT_INT(count(db, "SELECT count(*) FROM run WHERE status = 'done' AND noise IS NOT NULL"),
                  1);
    ew_arena_fini(&a);
}

/* ---- Kills ----------------------------------------------------------------------------------- */

/* Killed repeatedly, with its children: at the end each job is recorded exactly once; a child never
 * outlives its study, so it cannot finish beside its repetition. */
static void kills_lose_nothing(void)
{
    struct ew_arena a;
    struct ew_study s;
    struct ew_runner_counts c;
    char db[256], log[256];
    ew_arena_init(&a);
    snprintf(db, sizeof(db), "%s", ew_test_path("kills.db"));
    snprintf(log, sizeof(log), "%s", ew_test_path("kills.log"));
    const struct ew_runner_opts o = options(make_program("kills.sh", "sleep 0.03", log), db);
    EW_EXPECT_OK(kit_parse(&a,
                           "[study]\nrepeat = 2\n[defaults]\ncommand = work\nnetwork = n\n"
                           "[a]\nworkers = 0 1 2 3 4 5\n",
                           false, NULL, &s));
    int kills = 0;
    for (; kills < 8; kills++) {
        const pid_t pid = fork();
        if (pid == 0)
            _exit(run_all(&s, &o, &c) == EW_OK ? 0 : 1);
        usleep((useconds_t)(60e3 + 120e3 * ew_rng_uniform(3, 1, (uint64_t)kills)));
        kill(pid, SIGKILL);
        int status;
        waitpid(pid, &status, 0);
        if (WIFEXITED(status))
            break;
    }
    EW_EXPECT(kills >= 3);
    EW_EXPECT_OK(run_all(&s, &o, &c));
    EW_EXPECT_INT(c.known + c.done, 12);
    EW_EXPECT_INT(count(db, "SELECT count(*) FROM run WHERE status = 'done'"), 12);
    EW_EXPECT_INT(count(db, "SELECT count(*) FROM (SELECT DISTINCT job, repeat FROM run WHERE "
                            "status = 'done')"),
                  12);
    EW_EXPECT_INT(count(db, "SELECT count(*) FROM run WHERE status = 'running'"), 0);
    EW_EXPECT(lines_of(log) <= 12 + kills); /* the script cannot record its own completion */
    ew_arena_fini(&a);
}

/* A full disk stops the study with a message; no job is marked as failed. */
static void a_full_disk_stops_the_study(void)
{
    struct ew_arena a;
    struct ew_study s;
    struct ew_runner_counts c;
    char db[256], log[256];
    ew_arena_init(&a);
    snprintf(db, sizeof(db), "%s", ew_test_path("room.db"));
    snprintf(log, sizeof(log), "%s", ew_test_path("room.log"));
    struct ew_runner_opts o = options(make_program("room.sh", "", log), db);
    o.least_disk_bytes = INT64_MAX;
    EW_EXPECT_OK(kit_parse(&a, HEAD "[a]\nnetwork = n\nworkers = 0 1\n", false, NULL, &s));
    EW_EXPECT_ERR(run_all(&s, &o, &c), EW_ERR_IO, "are free in");
    EW_EXPECT_INT(count(db, "SELECT count(*) FROM run"), 0);
    o.least_disk_bytes = 1;
    EW_EXPECT_OK(run_all(&s, &o, &c));
    EW_EXPECT_INT(c.done, 2);
    ew_arena_fini(&a);
}

EW_TEST_MAIN(EW_TEST(jobs_are_run_once), EW_TEST(runs_are_sampled_once),
             EW_TEST(failures_are_recorded), EW_TEST(one_process_at_a_time),
             EW_TEST(children_know_their_run), EW_TEST(noisy_runs_are_marked_and_repeated),
             EW_TEST(jobs_have_a_limit), EW_TEST(kills_lose_nothing),
             EW_TEST(a_full_disk_stops_the_study))
