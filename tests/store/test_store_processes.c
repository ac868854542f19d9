/* SPDX-License-Identifier: Apache-2.0 */
/* Several processes with one store: concurrent writers, and writers killed at any moment. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "ew_test.h"
#include "store_kit.h"

#define RUNS   8
#define EPOCHS 5

/* Writes runs; a failure is the exit status. */
static void write_runs(const char *path, int runs)
{
    struct ew_store *s = NULL;
    if (ew_store_open(path, NULL, &s) != EW_OK)
        _exit(2);
    for (int i = 0; i < runs; i++) {
        const int64_t run = kit_begin(s, i);
        if (!run)
            _exit(3);
        for (int e = 0; e < EPOCHS; e++)
            if (kit_epoch(s, run, e, 1) != EW_OK)
                _exit(4);
        if (ew_store_run_end(s, run, EW_RUN_DONE, NULL, 1) != EW_OK)
            _exit(5);
    }
    ew_store_close(s);
    _exit(0);
}

/* Both also try to create the file. */
static void two_write_at_once(void)
{
    const char *path = ew_test_path("two.db");
    pid_t pids[3];
    for (int i = 0; i < 3; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            write_runs(path, RUNS);
    }
    for (int i = 0; i < 3; i++) {
        int status = -1;
        waitpid(pids[i], &status, 0);
        EW_EXPECT_INT(status, 0);
    }
    struct ew_store *s = NULL;
    if (!EW_EXPECT_OK(ew_store_open(path, NULL, &s)))
        return;
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM run WHERE status = 'done'"), 3 * RUNS);
    EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM epoch"), 3 * RUNS * EPOCHS);
    EW_EXPECT_INT(kit_int(s, "SELECT count(DISTINCT uid) FROM run"), 3 * RUNS);
    ew_store_close(s);
}

/* Regression: a process that checked the file before and after another one had created it took it
 * for a foreign one. */
static void several_make_the_file(void)
{
    enum { FILES = 24, MAKERS = 4 };
    for (int k = 0; k < FILES; k++) {
        char name[32];
        snprintf(name, sizeof(name), "made-%d.db", k);
        const char *path = ew_test_path(name);
        pid_t pids[MAKERS];
        for (int i = 0; i < MAKERS; i++) {
            pids[i] = fork();
            if (pids[i] == 0)
                write_runs(path, 0);
        }
        for (int i = 0; i < MAKERS; i++) {
            int status = -1;
            waitpid(pids[i], &status, 0);
            EW_EXPECT_INT(status, 0);
        }
    }
}

/* Killed repeatedly at varying moments: the file is always valid, finished runs have all their
 * epochs, and the interrupted one is marked. */
static void a_kill_loses_the_run_in_progress(void)
{
    const char *path = ew_test_path("kill.db");
    int64_t done = 0, broken = 0;
    /* On a busy machine no run may be finished by then: more and longer rounds follow. */
    for (int i = 0; i < 20 || (i < 200 && (done == 0 || broken == 0)); i++) {
        const pid_t pid = fork();
        if (pid == 0)
            write_runs(path, 1000000);
        const double most_us = 1000.0 * 40 * (1 + i / 20);
        usleep((useconds_t)(2000 + most_us * ew_rng_uniform(7, 1, (uint64_t)i)));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        struct ew_store *s = NULL;
        if (!EW_EXPECT_OK(ew_store_open(path, NULL, &s)))
            return;
        EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM pragma_integrity_check "
                                 "WHERE integrity_check = 'ok'"),
                      1);
        EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM run WHERE status = 'running'"), 0);
        const int64_t now = kit_int(s, "SELECT count(*) FROM run WHERE status = 'done'");
        broken = kit_int(s, "SELECT count(*) FROM run WHERE status = 'interrupted'");
        EW_EXPECT(now >= done);
        EW_EXPECT(broken <= i + 1);
        EW_EXPECT_INT(kit_int(s, "SELECT count(*) FROM run r WHERE status = 'done' AND (SELECT "
                                 "count(*) FROM epoch WHERE run = r.id) <> 5"),
                      0);
        done = now;
        ew_store_close(s);
    }
    EW_EXPECT(done > 0);
    EW_EXPECT(broken > 0);
}

/* Runs of a living process are not marked. */
static void the_living_are_left_alone(void)
{
    const char *path = ew_test_path("living.db");
    struct ew_store *a = NULL, *b = NULL;
    EW_EXPECT_OK(ew_store_open(path, NULL, &a));
    EW_EXPECT(kit_begin(a, 1) > 0);
    EW_EXPECT_OK(ew_store_open(path, NULL, &b));
    EW_EXPECT_INT(kit_int(b, "SELECT count(*) FROM run WHERE status = 'running'"), 1);
    ew_store_close(b);
    ew_store_close(a);
}

EW_TEST_MAIN(EW_TEST(two_write_at_once), EW_TEST(several_make_the_file),
             EW_TEST(a_kill_loses_the_run_in_progress), EW_TEST(the_living_are_left_alone))
