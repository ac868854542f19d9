/* SPDX-License-Identifier: Apache-2.0 */
/* Output files of jobs, with a script instead of edgewise. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ew_test.h"
#include "study/outputs.h"
#include "study/runner.h"
#include "study_kit.h"

struct opts {
    int64_t size;
    const char *output, *db;
};

static const struct ew_field fields[] = {
    {.name = "size", .type = EW_FIELD_INT, .offset = offsetof(struct opts, size), .def = "1"},
    {.name = "output", .type = EW_FIELD_STR, .offset = offsetof(struct opts, output)},
    {.name = "db", .type = EW_FIELD_STR, .offset = offsetof(struct opts, db)},
    EW_FIELD_END,
};

static const struct ew_study_command command = {"make", fields, sizeof(struct opts)};

static ew_err parse(struct ew_arena *a, const char *text, struct ew_study *out)
{
    const struct ew_study_opts o = {.commands = &command, .n_commands = 1, .repeat = 1};
    return ew_study_parse(a, "kit", ew_arena_strdup(a, text), &o, out);
}

static bool there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* Runs the study's first job. */
static ew_err step(const struct ew_study *s, const struct ew_runner_opts *o,
                   struct ew_runner_report *report)
{
    struct ew_runner *r;
    EW_TRY(ew_runner_open(s, o, &r));
    const ew_err err = ew_runner_step(r, report);
    ew_runner_close(r);
    return err;
}

/* Killed after a job was stored as done, but before its output was renamed: the next start does
 * that.  Killed earlier, the job is repeated in an emptied folder. */
static void kills_lose_nothing(void)
{
    struct ew_arena a;
    struct ew_study s;
    struct ew_output out;
    struct ew_runner_report report = {0};
    char text[1024], db[512], keep[512], script[512];
    snprintf(db, sizeof(db), "%s", ew_test_path("kill.db"));
    snprintf(keep, sizeof(keep), "%s", ew_test_path("kept"));
    static const char body[] = "#!/bin/sh\nfor w; do case $w in --output=*) "
                               "echo whole > \"${w#--output=}\";; esac; done\n";
    snprintf(script, sizeof(script), "%s", ew_test_file("make.sh", body, sizeof(body) - 1));
    chmod(script, 0755);
    ew_arena_init(&a);
    snprintf(text, sizeof(text), "[a]\ncommand = make\nkeep = %s\n", keep);
    EW_EXPECT_OK(parse(&a, text, &s));
    EW_EXPECT_OK(ew_output_find(&s, &s.jobs[0], NULL, &out));
    const struct ew_runner_opts o = {
        .program = script, .db = db, .outside = true, .limits = {.busy = 2}, .least_disk_bytes = 1};
    EW_EXPECT_OK(ew_output_begin(&out)); /* the state that a killed run leaves */
    EW_EXPECT_OK(ew_file_write(out.path, "half", 4));
    EW_EXPECT_OK(step(&s, &o, &report));
    EW_EXPECT_INT(report.event, EW_RUNNER_DONE);
    EW_EXPECT(there(keep) && !there(out.folder));

    unlink(keep);
    EW_EXPECT_OK(ew_output_begin(&out));
    EW_EXPECT_OK(ew_file_write(out.path, "late", 4));
    EW_EXPECT_OK(step(&s, &o, &report));
    EW_EXPECT_INT(report.event, EW_RUNNER_KNOWN);
    EW_EXPECT(there(keep) && !there(out.folder));

    /* Somebody else's file has appeared at the target: the output stays where it was made. */
    EW_EXPECT_OK(ew_output_begin(&out));
    EW_EXPECT_OK(ew_file_write(out.path, "whole", 5));
    EW_EXPECT_ERR(ew_output_keep(&out), EW_ERR_IO, "the output stays at");
    EW_EXPECT_HAS(ew_error_message(), out.path);
    EW_EXPECT(there(out.path));
    ew_output_drop(&out);
    ew_arena_fini(&a);
}

static void refuses_before_the_start(void)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"keep = ../x", "not a name inside"},
        {"keep = a/../../x", "not a name inside"},
        {"keep = /tmp/x", "not a name inside"},
        {"size = 1 2\nkeep = x", "two jobs would keep"},
        {"keep = x\n[b]\ncommand = make\nsize = 3\nkeep = ./x/y", "two jobs would keep"},
        {"keep = x\n[study]\nsetup = ../y | data make", "not a name inside"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct ew_arena a;
        struct ew_study s;
        char text[256];
        ew_arena_init(&a);
        snprintf(text, sizeof(text), "[a]\ncommand = make\n%s\n", bad[i].text);
        EW_EXPECT_OK(parse(&a, text, &s));
        EW_EXPECT_ERR(ew_output_check(&s, false), EW_ERR_FORMAT, bad[i].says);
        ew_arena_fini(&a);
    }
}

EW_TEST_MAIN(EW_TEST(kills_lose_nothing), EW_TEST(refuses_before_the_start))
