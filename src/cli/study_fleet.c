/* SPDX-License-Identifier: Apache-2.0 */
/* Terminal output of a study on many machines. */
#include "cli/study_fleet.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/results_show.h"
#include "cli/study_show.h"

/* ---- While it runs --------------------------------------------------------------------------- */

static void show_machine(const struct ew_fleet_report *r)
{
    if (r->event == EW_FLEET_UP)
        fprintf(stderr, "%s: %s, %s, %lld cores, device %s\n", r->machine,
                r->up->board ? r->up->board : "unknown board",
                r->up->cpu ? r->up->cpu : "unknown CPU", (long long)r->up->cores, r->device);
    else
        fprintf(stderr, "%s: %s%s%s; %s\n", r->machine, r->reason,
                r->job ? "; its job is interrupted: " : "", r->job ? r->job->label : "",
                r->event == EW_FLEET_LOST ? "trying again" : "given up");
}

static void show_job(const struct ew_study *study, const struct ew_fleet_report *r,
                     const struct ew_runner_counts *c)
{
    char text[EW_JOB_CHARS], left[EW_DURATION_CHARS];
    ew_study_job_text(study, r->job, text);
    fprintf(stderr, "[%lld/%lld] %s%s%s%s: ", (long long)c->at, (long long)c->total, r->job->label,
            text, r->machine ? " on " : "", r->machine ? r->machine : "");
    if (r->event == EW_FLEET_FAILED)
        fprintf(stderr, "failed: %s", r->reason);
    else if (r->event == EW_FLEET_SKIPPED)
        fprintf(stderr, "skipped: %s", r->reason);
    else
        fprintf(stderr, "%.1f s", r->wall_s);
    if (*r->noise)
        fprintf(stderr, " (%s)", r->noise);
    if (c->at < c->total)
        fprintf(stderr, ", %s left", ew_duration_text(c->left_s, left));
    fputc('\n', stderr);
}

static ew_err follow(const struct ew_study *study, struct ew_fleet_run *f)
{
    struct ew_fleet_report r;
    do {
        EW_TRY(ew_fleet_run_step(f, &r));
        const struct ew_runner_counts c = ew_fleet_run_counts(f);
        if (r.event == EW_FLEET_UP || r.event == EW_FLEET_LOST || r.event == EW_FLEET_GIVEN_UP)
            show_machine(&r);
        else if (r.event != EW_FLEET_END && r.event != EW_FLEET_BEGUN)
            show_job(study, &r, &c);
    } while (r.event != EW_FLEET_END);
    return EW_OK;
}

/* ---- After it -------------------------------------------------------------------------------- */

/* The SQL condition of these jobs' runs on these machines.  Only checked names and hashes go into
 * it. */
static ew_err condition(const struct ew_study *study, const struct ew_machines *m,
                        struct ew_arena *a, const char **out)
{
    EW_CHECK(!strchr(study->name, '\''), EW_ERR_USAGE, "%s: its name has a quote in it",
             study->name);
    const char *text =
        ew_arena_printf(a, "study = '%s' and status = 'done' and machine_unit in (''", study->name);
    for (int i = 0; text && i < m->n; i++)
        text = ew_arena_printf(a, "%s, '%s'", text, m->list[i].name);
    text = text ? ew_arena_printf(a, "%s) and job in (''", text) : NULL;
    for (int i = 0; text && i < study->n_jobs; i++)
        if (study->jobs[i].repeat == 0)
            text = ew_arena_printf(a, "%s, '%s'", text, study->jobs[i].row.id);
    *out = text ? ew_arena_printf(a, "%s)", text) : NULL;
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory for the results");
    return EW_OK;
}

/* Prints the study's columns after the machine, grouped by job. */
static ew_err show_results(const struct ew_study *study, const struct ew_machines *m,
                           struct ew_store *s, struct ew_arena *a)
{
    const char *where, *columns = NULL;
    struct ew_rows *rows;
    EW_TRY(condition(study, m, a, &where));
    if (study->show)
        columns = ew_arena_printf(
            a, "%s%s", strstr(study->show, "machine_unit") ? "" : "machine_unit,", study->show);
    const char *plain = study->per_device ? "label, job, repeat" : "label, id";
    const char *order = ew_arena_printf(a, "%s, machine_unit", study->sort ? study->sort : plain);
    if (ew_store_results(s, where, order, &rows) != EW_OK)
        EW_TRY(ew_store_results(s, where, NULL, &rows));
    printf("%s\n\n", study->title);
    const ew_err err = ew_results_table(rows, columns, true);
    const ew_err read = ew_rows_free(rows);
    return err == EW_OK ? read : err;
}

static ew_err json_results(const struct ew_study *study, const struct ew_machines *m,
                           const struct ew_runner_counts *c)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "study", study->name);
    ew_json_int(&j, "jobs", c->total);
    ew_json_int(&j, "done", c->done + c->known);
    ew_json_int(&j, "failed", c->failed);
    ew_json_int(&j, "skipped", c->skipped);
    ew_json_int(&j, "left", c->total - c->at);
    ew_json_array(&j, "machines");
    for (int i = 0; i < m->n; i++)
        ew_json_str(&j, NULL, m->list[i].name);
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

ew_err ew_study_on_fleet(const struct ew_study *study, const struct ew_fleet_opts *o, bool json)
{
    struct ew_fleet_run *f;
    struct ew_arena a;
    EW_TRY(ew_fleet_run_open(study, o, &f));
    ew_arena_init(&a);
    ew_err err = follow(study, f);
    const struct ew_runner_counts c = ew_fleet_run_counts(f);
    if (err == EW_OK)
        err = json ? json_results(study, o->machines, &c)
                   : show_results(study, o->machines, ew_fleet_run_store(f), &a);
    ew_arena_fini(&a);
    ew_fleet_run_close(f);
    EW_TRY(err);
    EW_CHECK(c.at == c.total && c.failed + c.skipped == 0, EW_ERR_SKIPPED,
             "%s: of %lld jobs %lld failed, %lld could not be done on any machine and %lld wait "
             "for one; the same command continues",
             study->name, (long long)c.total, (long long)c.failed, (long long)c.skipped,
             (long long)(c.total - c.at));
    return EW_OK;
}
