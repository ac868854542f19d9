/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of a study before it runs, with their estimated cost. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/study_show.h"
#include "report/text_table.h"

#define MAX_COMMANDS 40 /* listed in the table */

/* Estimate of a job, and whether it is done. */
struct job_status {
    struct ew_estimate e;
    bool done;
};

static ew_err job_done(const struct ew_study *study, const struct ew_study_job *j,
                       struct ew_store *s, bool *done)
{
    int64_t id;
    *done = false;
    if (!s)
        return EW_OK;
    return ew_store_int(s, &id, done,
                        "SELECT 1 FROM run WHERE job = ?1 AND study = ?2 AND repeat = ?3 AND "
                        "status = 'done' LIMIT 1",
                        "ssi", j->row.id, study->name, j->repeat);
}

static ew_err look(const struct ew_study *study, struct ew_store *s, struct job_status *out)
{
    double rate;
    EW_TRY(ew_estimate_rate(&rate));
    for (int i = 0; i < study->n_jobs; i++) {
        EW_TRY(ew_estimate_job(&study->jobs[i], s, rate, &out[i].e));
        EW_TRY(job_done(study, &study->jobs[i], s, &out[i].done));
    }
    return EW_OK;
}

/* ---- As a table ------------------------------------------------------------------------------ */

static void bytes_cell(struct ew_table *t, int64_t bytes)
{
    char text[EW_TEXT_CHARS];
    ew_table_cell(t, "%s", bytes == EW_INT_ABSENT ? "?" : ew_text_bytes(bytes, text));
}

static void job_row(struct ew_table *t, const struct ew_study *study, const struct ew_study_job *j,
                    const struct job_status *o)
{
    char text[EW_JOB_CHARS], time[EW_DURATION_CHARS];
    ew_study_job_text(study, j, text);
    ew_table_cell(t, "%s", j->label);
    ew_table_cell(t, "%s", *text ? text + 1 : "");
    ew_table_cell(t, "%s", j->row.id);
    ew_table_cell(t, "%s%s", ew_duration_text(o->e.seconds, time),
                  o->e.measured || !isfinite(o->e.seconds) ? "" : " *");
    bytes_cell(t, o->e.memory_bytes);
    bytes_cell(t, o->e.disk_bytes);
    ew_table_cell(t, "%s", o->done ? "done" : "");
}

static void print_totals(const struct ew_study *study, const struct job_status *list)
{
    char time[EW_DURATION_CHARS], memory[EW_TEXT_CHARS], disk[EW_TEXT_CHARS];
    double seconds = 0;
    int64_t most_memory = 0, most_disk = 0, done = 0, unknown = 0;
    for (int i = 0; i < study->n_jobs; i++) {
        const struct ew_estimate *e = &list[i].e;
        if (isfinite(e->seconds) && !list[i].done)
            seconds += e->seconds;
        unknown += !isfinite(e->seconds) && !list[i].done;
        most_memory = ew_max_i64(most_memory, e->memory_bytes);
        most_disk = ew_max_i64(most_disk, e->disk_bytes);
        done += list[i].done;
    }
    printf("%s: %d jobs, %lld done", study->name, study->n_jobs, (long long)done);
    if (unknown < study->n_jobs - done || unknown == 0)
        printf("; about %s for the rest, at most %s of memory and %s of disk",
               ew_duration_text(seconds, time), ew_text_bytes(most_memory, memory),
               ew_text_bytes(most_disk, disk));
    if (unknown)
        printf("; no estimate for %lld: their data set is not here yet, or no similar job has run",
               (long long)unknown);
    printf("\n* estimated from the arithmetic; others are from earlier runs\n");
}

/* One word as a shell reads it: a value cannot pass for several, nor for a command. */
static void print_word(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_.,:=/@%+";
    if (*word && !word[strspn(word, plain)]) {
        printf(" %s", word);
        return;
    }
    printf(" '");
    for (const char *p = word; *p; p++)
        *p == '\'' ? (void)fputs("'\\''", stdout) : (void)putchar(*p);
    putchar('\'');
}

/* Lists the commands that the study starts, so that an untrusted file can be reviewed. */
static void print_commands(const struct ew_study *study)
{
    int shown = 0, n = 0;
    printf("processes that it would start:\n");
    for (const char *line = study->setup; line && *line;) {
        line += strspn(line, " \t\n");
        const size_t length = strcspn(line, "\n"), path = strcspn(line, " \t|");
        const char *bar = memchr(line, '|', length);
        if (bar)
            printf("  edgewise%.*s   (if %.*s does not exist)\n",
                   (int)(length - (size_t)(bar + 1 - line)), bar + 1, (int)path, line);
        line += length;
    }
    for (int i = 0; i < study->n_jobs; i++) {
        const struct ew_study_job *j = &study->jobs[i];
        if (j->repeat > 0 || n++ >= MAX_COMMANDS)
            continue;
        printf("  edgewise");
        for (int k = 0; k < j->n_argv; k++)
            print_word(j->argv[k]);
        printf("\n");
        shown++;
    }
    if (n > shown)
        printf("  and %d more, which --json lists\n", n - shown);
}

static ew_err print_table(const struct ew_study *study, const struct job_status *list)
{
    static const char *const head[] = {"section", "settings", "job", "time", "memory", "disk", ""};
    struct ew_table t;
    ew_table_init(&t, "lllrrrl");
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; i < study->n_jobs; i++)
        job_row(&t, study, &study->jobs[i], &list[i]);
    EW_TRY(ew_table_print(&t, stdout));
    print_totals(study, list);
    print_commands(study);
    return EW_OK;
}

/* ---- As JSON --------------------------------------------------------------------------------- */

static void job_json(struct ew_json *out, const struct ew_study_job *j, const struct job_status *o)
{
    ew_json_object(out, NULL);
    ew_json_str(out, "label", j->label);
    ew_json_str(out, "job", j->row.id);
    ew_json_str(out, "command", j->command);
    ew_json_str(out, "network", j->network);
    ew_json_int(out, "repeat", j->repeat);
    ew_json_str(out, "options", j->row.options);
    ew_json_array(out, "argv");
    for (int i = 0; i < j->n_argv; i++)
        ew_json_str(out, NULL, j->argv[i]);
    ew_json_end(out);
    ew_json_num(out, "seconds", o->e.seconds);
    ew_json_bool(out, "measured", o->e.measured);
    if (o->e.memory_bytes == EW_INT_ABSENT)
        ew_json_null(out, "memory_bytes");
    else
        ew_json_int(out, "memory_bytes", o->e.memory_bytes);
    ew_json_int(out, "disk_bytes", o->e.disk_bytes);
    ew_json_bool(out, "done", o->done);
    ew_json_end(out);
}

static ew_err print_json(const struct ew_study *study, const struct job_status *list)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_array(&j, NULL);
    for (int i = 0; i < study->n_jobs; i++)
        job_json(&j, &study->jobs[i], &list[i]);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

ew_err ew_study_show_jobs(const struct ew_study *study, struct ew_store *s, bool json)
{
    struct ew_arena a;
    ew_arena_init(&a);
    struct job_status *list = ew_arena_array(&a, (size_t)study->n_jobs, sizeof(*list));
    ew_err err = list ? look(study, s, list) : ew_fail(EW_ERR_MEMORY, "no memory for a study");
    if (err == EW_OK)
        err = json ? print_json(study, list) : print_table(study, list);
    ew_arena_fini(&a);
    return err;
}
