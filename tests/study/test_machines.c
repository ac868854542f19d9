/* SPDX-License-Identifier: Apache-2.0 */
/* Machines of a fleet: their file, the messages to them, and which of their rows are accepted. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../store/store_kit.h"
#include "ew_test.h"
#include "study/epoch_feed.h"
#include "study/frames.h"
#include "study/machines.h"

/* ---- The file -------------------------------------------------------------------------------- */

static ew_err read_text(struct ew_arena *a, const char *text, struct ew_machines *out)
{
    ew_arena_init(a);
    return ew_machines_read(a, ew_test_file("boards.ini", text, strlen(text)), out);
}

static void file_is_read(void)
{
    struct ew_arena a;
    struct ew_machines m;
    const char **argv;
    EW_EXPECT_OK(
        read_text(&a,
                  "[pi4]\nlauncher = ssh -o \"Port 22\" pi4\nprogram = bin/edgewise # there\n"
                  "folder = work\nwhen-lost = wait\njob-timeout = 90\n[here]\ntimeout = 5\n",
                  &m));
    EW_EXPECT(m.n == 2);
    EW_EXPECT_STR(m.list[0].name, "pi4");
    EW_EXPECT(m.list[0].when_lost == EW_LOST_WAIT && m.list[1].when_lost == EW_LOST_OTHER);
    EW_EXPECT(m.list[0].job_timeout_s > 89 && m.list[1].job_timeout_s <= 0);
    EW_EXPECT_OK(ew_machine_command(&m.list[0], "/self", &a, &argv));
    static const char *const want[] = {"ssh",          "-o",    "Port 22",       "pi4",
                                       "bin/edgewise", "agent", "--folder=work", "--unit=pi4"};
    for (size_t i = 0; i < EW_COUNT(want); i++)
        EW_EXPECT_STR(argv[i], want[i]);
    EW_EXPECT(!argv[EW_COUNT(want)]);
    EW_EXPECT_OK(ew_machine_command(&m.list[1], "/self", &a, &argv));
    EW_EXPECT_STR(argv[0], "/self");
    ew_arena_fini(&a);
}

/* ssh passes arguments to a shell, so none may have a meaning there. */
static void wrong_files_are_refused(void)
{
    static const char *const bad[] = {
        "",
        "launcher = ssh a\n",
        "[a]\n[a]\n",
        "[a]\nlaunch = ssh a\n",
        "[a b]\n",
        "[a]\nprogram = edgewise;reboot\n",
        "[a]\nprogram = $(reboot)\n",
        "[a]\nfolder = work dir\n",
        "[a]\nfolder = -rf\n",
        "[a]\nlauncher = --help\n",
        "[a]\nlauncher = \"ssh a\n",
        "[a]\nwhen-lost = panic\n",
    };
    for (size_t i = 0; i < EW_COUNT(bad); i++) {
        struct ew_arena a;
        struct ew_machines m;
        if (!EW_EXPECT(read_text(&a, bad[i], &m) != EW_OK))
            printf("accepted: %s\n", bad[i]);
        ew_arena_fini(&a);
    }
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Both ends of one pipe, in the same process. */
static void open_pair(struct ew_frames *f)
{
    int fds[2] = {-1, -1};
    EW_EXPECT(pipe(fds) == 0);
    EW_EXPECT_OK(ew_frames_open(f, fds[0], fds[1], "pair"));
}

static void messages_arrive(void)
{
    struct ew_frames f;
    struct ew_frame got;
    bool there, end;
    static char large[300000]; /* more than a pipe's buffer */
    memset(large, 'x', sizeof(large));
    open_pair(&f);
    EW_EXPECT_OK(ew_frames_put_text(&f, "hello", "a\nedgewise end 1\n"));
    EW_EXPECT_OK(ew_frames_put(&f, "out", large, sizeof(large)));
    EW_EXPECT_OK(ew_frames_put(&f, "end", "", 0));
    EW_EXPECT(ew_frames_waiting(&f));
    static const char *const types[] = {"hello", "out", "end"};
    static const size_t sizes[] = {17, sizeof(large), 0};
    int n = 0;
    for (int turn = 0; turn < 100 && n < 3; turn++) {
        EW_EXPECT_OK(ew_frames_read(&f, &end));
        for (;;) {
            EW_EXPECT_OK(ew_frames_next(&f, &got, &there));
            if (!there)
                break;
            EW_EXPECT_STR(got.type, types[n]);
            EW_EXPECT(got.size == sizes[n] && strlen(got.data) == sizes[n]);
            n++;
        }
        EW_EXPECT_OK(ew_frames_flush(&f));
    }
    EW_EXPECT(n == 3 && !end);
    ew_frames_close(&f);
    ew_frames_close(&f);
}

static void wrong_messages_are_refused(void)
{
    static const char *const bad[] = {
        "Welcome to Ubuntu\n",
        "edgewise \n",
        "edgewise hello -1\n",
        "edgewise hello 99999999999\n",
        "edgewise HELLO 1\nx\n",
        "edgewise hello 1 2\n",
        "edgewise hellohellohellohello 1\n",
        "edgewise hello 000000000000000000000000000000000001\n",
    };
    for (size_t i = 0; i < EW_COUNT(bad); i++) {
        struct ew_frames f;
        struct ew_frame got;
        bool there = false, end;
        open_pair(&f);
        EW_EXPECT(write(f.out, bad[i], strlen(bad[i])) == (ssize_t)strlen(bad[i]));
        EW_EXPECT_OK(ew_frames_read(&f, &end));
        if (!EW_EXPECT(ew_frames_next(&f, &got, &there) != EW_OK && !there))
            printf("accepted: %s\n", bad[i]);
        ew_frames_close(&f);
    }
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* A machine's store with one finished run, its machine called `unit`, with a correct hash or
 * not. */
static ew_err make_theirs(const char *path, const char *unit, bool honest, char job[32])
{
    struct ew_store *s;
    struct ew_machine_row m;
    struct ew_run_row r;
    char id[EW_RECORD_ID_CHARS];
    unlink(path);
    EW_TRY(ew_store_open(path, NULL, &s));
    const int64_t run = kit_begin(s, 1);
    ew_record_clear(EW_RECORD_MACHINE, &m);
    m.unit = unit;
    EW_TRY(ew_machine_row_id(&m, id));
    m.id = honest ? id : "0123456789abcdef";
    EW_TRY(ew_store_put(s, EW_RECORD_MACHINE, 0, &m));
    ew_record_clear(EW_RECORD_RUN, &r);
    r.machine = m.id;
    r.status = EW_RUN_DONE;
    EW_TRY(ew_store_run_update(s, run, &r));
    EW_TRY(kit_metric(s, run, "median_ms", 3));
    struct ew_rows *rows;
    EW_TRY(ew_store_query(s, &rows, "SELECT job FROM run", ""));
    if (ew_rows_next(rows))
        snprintf(job, 32, "%s", ew_rows_text(rows, 0));
    EW_TRY(ew_rows_free(rows));
    ew_store_close(s);
    return EW_OK;
}

/* Imports it as the rows of `claim`; returns how many were added, -1: refused. */
static int take(const char *path, struct ew_store *home, const struct ew_store_claim *claim)
{
    struct ew_store *s = NULL;
    int n = 0;
    if (!EW_EXPECT_OK(ew_store_open(path, NULL, &s)))
        return -2;
    const ew_err err = ew_store_take(s, home, claim, &n);
    ew_store_close(s);
    return err == EW_OK ? n : -1;
}

static void only_own_rows_are_taken(void)
{
    char theirs[256], job[32] = "";
    struct ew_store *home = NULL;
    snprintf(theirs, sizeof(theirs), "%s/theirs.db", ew_test_dir());
    char path[256];
    snprintf(path, sizeof(path), "%s/home.db", ew_test_dir());
    EW_EXPECT_OK(ew_store_open(path, NULL, &home));
    EW_EXPECT_OK(make_theirs(theirs, "pi4", true, job));
    const struct ew_store_claim mine = {job, "kit", "pi4", 0};
    struct ew_store_claim other = mine;
    other.unit = "nano";
    EW_EXPECT(take(theirs, home, &other) == -1);
    other = mine;
    other.study = "another";
    EW_EXPECT(take(theirs, home, &other) == -1);
    other = mine;
    other.repeat = 1;
    EW_EXPECT(take(theirs, home, &other) == -1);
    other = mine;
    other.job = "0000000000000000";
    EW_EXPECT(take(theirs, home, &other) == -1);
    EW_EXPECT(kit_int(home, "SELECT count(*) FROM run") == 0);
    EW_EXPECT(kit_int(home, "SELECT count(*) FROM machine") == 0);
    EW_EXPECT(take(theirs, home, &mine) == 1);
    EW_EXPECT(take(theirs, home, &mine) == 0); /* the run's uid is known already */
    EW_EXPECT(kit_int(home, "SELECT count(*) FROM metric") == 1);
    EW_EXPECT(kit_int(home, "SELECT count(*) FROM job") == 0); /* our job exists already */
    EW_EXPECT_OK(make_theirs(theirs, "pi4", false, job));      /* another machine's id */
    EW_EXPECT(take(theirs, home, &mine) == -1);
    EW_EXPECT(kit_int(home, "SELECT count(*) FROM run") == 1);
    ew_store_close(home);
}

/* ---- Epochs ---------------------------------------------------------------------------------- */

static ew_err take_epoch(struct ew_store *home, int64_t run, const char *text)
{
    char data[256];
    snprintf(data, sizeof(data), "%s", text);
    const struct ew_frame f = {.type = "epoch", .data = data, .size = strlen(data)};
    return ew_epoch_feed_take(home, run, &f);
}

/* The agent finds its job's store by the arguments; finished epochs are sent once. */
static void epochs_come_as_they_end(void)
{
    char theirs[256], path[256], words[300];
    struct ew_store *s = NULL, *home = NULL;
    struct ew_epoch_feed feed;
    struct ew_epoch_row row;
    struct ew_frames f;
    struct ew_frame got;
    int pipes[2], n = 0;
    bool there = true, end;
    snprintf(theirs, sizeof(theirs), "%s/epochs.db", ew_test_dir());
    snprintf(path, sizeof(path), "%s/works.db", ew_test_dir());
    EW_EXPECT_OK(ew_store_open(theirs, NULL, &s));
    EW_EXPECT_OK(ew_store_open(path, NULL, &home));
    const int64_t run = kit_begin(s, 1), works = kit_begin(home, 1);
    ew_record_clear(EW_RECORD_EPOCH, &row);
    for (row.epoch = 1; row.epoch <= 3; row.epoch++) {
        row.accuracy = 0.25 * (double)row.epoch;
        EW_EXPECT_OK(ew_store_put(s, EW_RECORD_EPOCH, run, &row));
    }
    const int size = snprintf(words, sizeof(words), "study%c--db=%s", '\0', theirs) + 1;
    ew_epoch_feed_begin(&feed, words, (size_t)size);
    EW_EXPECT(pipe(pipes) == 0);
    EW_EXPECT_OK(ew_frames_open(&f, pipes[0], pipes[1], "far"));
    for (int i = 0; i < 2; i++)
        EW_EXPECT_OK(ew_epoch_feed_send(&feed, &f)); /* nothing new the second time */
    EW_EXPECT_OK(ew_frames_read(&f, &end));
    for (; there; n += there) {
        EW_EXPECT_OK(ew_frames_next(&f, &got, &there));
        if (there)
            EW_EXPECT_OK(ew_epoch_feed_take(home, works, &got));
    }
    EW_EXPECT_INT(n, 3);
    EW_EXPECT(kit_int(home, "SELECT count(*) FROM epoch") == 3);
    EW_EXPECT(kit_int(home, "SELECT 100 * accuracy FROM epoch WHERE epoch = 3") == 75);
    EW_EXPECT(take_epoch(home, works, "epoch=0\n") != EW_OK);
    EW_EXPECT(take_epoch(home, works, "epoch=1000000000\n") != EW_OK);
    EW_EXPECT(take_epoch(home, works, "accuracy=1\n") != EW_OK);
    EW_EXPECT(take_epoch(home, works, "epoch=4\naccuracy=much\n") != EW_OK);
    EW_EXPECT(take_epoch(home, works, "Welcome\n") != EW_OK);
    EW_EXPECT(kit_int(home, "SELECT count(*) FROM epoch") == 3);
    ew_frames_close(&f);
    ew_store_close(s);
    ew_store_close(home);
}

EW_TEST_MAIN(EW_TEST(epochs_come_as_they_end), EW_TEST(file_is_read),
             EW_TEST(wrong_files_are_refused), EW_TEST(messages_arrive),
             EW_TEST(wrong_messages_are_refused), EW_TEST(only_own_rows_are_taken))
