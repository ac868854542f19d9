/* SPDX-License-Identifier: Apache-2.0 */
/* Terminal output of a study. */
#include "cli/study_show.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/results_show.h"
#include "report/text_table.h"
#include "study/summary.h"

const char *ew_duration_text(double seconds, char out[EW_DURATION_CHARS])
{
    if (!isfinite(seconds) || seconds > 1e9) {
        snprintf(out, EW_DURATION_CHARS, "?");
        return out;
    }
    const long long s = (long long)(seconds + 0.5);
    if (seconds < 10)
        snprintf(out, EW_DURATION_CHARS, "%.1f s", seconds);
    else if (s < 3600)
        snprintf(out, EW_DURATION_CHARS, "%d:%02d", (int)(s / 60), (int)(s % 60));
    else
        snprintf(out, EW_DURATION_CHARS, "%lld:%02d:%02d", s / 3600, (int)(s / 60 % 60),
                 (int)(s % 60));
    return out;
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

/* Whether jobs of the same section differ in this setting. */
static bool varies(const struct ew_study *study, const struct ew_study_job *j,
                   const struct ew_setting *g)
{
    for (int i = 0; i < study->n_jobs; i++) {
        const char *other = ew_study_given(&study->jobs[i], g->name);
        if (strcmp(study->jobs[i].label, j->label) == 0 && other && strcmp(other, g->value) != 0)
            return true;
    }
    return false;
}

/* Whether the setting is derived from another one, as "out/{net}" is. */
static bool follows(const struct ew_study_job *j, const struct ew_setting *g)
{
    if (strcmp(g->name, "network") != 0)
        return strcmp(g->name, "keep") == 0;
    for (int i = 0; i < j->n_given; i++)
        if (&j->given[i] != g && strlen(j->given[i].value) > 2 &&
            strstr(g->value, j->given[i].value))
            return true;
    return false;
}

void ew_study_job_text(const struct ew_study *study, const struct ew_study_job *j,
                       char out[EW_JOB_CHARS])
{
    int n = 0;
    out[0] = '\0';
    for (int i = 0; i < j->n_given && n < EW_JOB_CHARS; i++)
        if (varies(study, j, &j->given[i]) && !follows(j, &j->given[i]))
            n += snprintf(out + n, EW_JOB_CHARS - (size_t)n, " %s=%s", j->given[i].name,
                          j->given[i].value);
    if (study->repeat > 1 && n < EW_JOB_CHARS)
        snprintf(out + n, EW_JOB_CHARS - (size_t)n, " repeat=%lld", (long long)j->repeat);
}

/* ---- While it runs --------------------------------------------------------------------------- */

void ew_study_show_report(const struct ew_study *study, const struct ew_runner_report *r,
                          const struct ew_runner_counts *c)
{
    char text[EW_JOB_CHARS], left[EW_DURATION_CHARS];
    if (!r->job || r->event == EW_RUNNER_KNOWN)
        return;
    ew_study_job_text(study, r->job, text);
    fprintf(stderr, "[%lld/%lld] %s%s: ", (long long)c->at, (long long)c->total, r->job->label,
            text);
    if (r->event == EW_RUNNER_FAILED)
        fprintf(stderr, "failed: %s", r->reason);
    else if (r->event == EW_RUNNER_SKIPPED)
        fprintf(stderr, "skipped: %s", r->reason);
    else
        fprintf(stderr, "%.1f s", r->wall_s);
    if (r->noise)
        fprintf(stderr, " (%s%s)", r->noise, r->event == EW_RUNNER_NOISY ? "; once more" : "");
    if (c->at < c->total)
        fprintf(stderr, ", %s left", ew_duration_text(c->left_s, left));
    fputc('\n', stderr);
}

/* ---- After it -------------------------------------------------------------------------------- */

/* The SQL condition of the study's current jobs: other runs of the study may come from an older
 * version of the file.  Only checked names and hashes go into it. */
static ew_err condition(const struct ew_study *study, const struct ew_machine_row *m,
                        struct ew_arena *a, const char **out)
{
    EW_CHECK(!strchr(study->name, '\'') && !strchr(m->unit, '\''), EW_ERR_USAGE,
             "%s: its name has a quote in it", study->name);
    const char *text = ew_arena_printf(
        a, "study = '%s' and status = 'done' and machine_unit = '%s' and job in (''", study->name,
        m->unit);
    for (int i = 0; text && i < study->n_jobs; i++)
        if (study->jobs[i].repeat == 0)
            text = ew_arena_printf(a, "%s, '%s'", text, study->jobs[i].row.id);
    *out = text ? ew_arena_printf(a, "%s)", text) : NULL;
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory for the results");
    return EW_OK;
}

static ew_err open_results(const struct ew_study *study, struct ew_store *s,
                           const struct ew_machine_row *m, struct ew_rows **out)
{
    struct ew_arena a;
    const char *where;
    ew_arena_init(&a);
    ew_err err = condition(study, m, &a, &where);
    /* `sort` may name a column that no run has: then sort by id. */
    if (err == EW_OK &&
        ew_store_results(s, where, study->sort ? study->sort : "label, id", out) != EW_OK)
        err = ew_store_results(s, where, NULL, out);
    ew_arena_fini(&a);
    return err;
}

/* Four significant digits; large integers in full. */
static void number_cell(struct ew_table *t, double v)
{
    const bool whole = fabs(v) >= 1000 && fabs(v) < 1e15;
    ew_table_cell(t, whole ? "%.0f" : "%.4g", v);
}

/* Times of a reduced study have no ratio to published ones of the full size. */
static bool has_ratio(const struct ew_study *study, const struct ew_published_comparison *c)
{
    const char *unit = c->published->unit;
    const bool share = !unit || strcmp(unit, "%") == 0;
    return c->runs && c->published->value > 0 && (!study->quick || share);
}

static void compare_row(struct ew_table *t, const struct ew_study *study,
                        const struct ew_published_comparison *c)
{
    const struct ew_published_row *p = c->published;
    ew_table_cell(t, "%s", p->metric);
    ew_table_cell(t, "%s", p->settings);
    number_cell(t, p->value);
    if (c->runs)
        number_cell(t, c->value);
    else
        ew_table_cell(t, "-");
    ew_table_cell(t, "%s", p->unit ? p->unit : "");
    if (has_ratio(study, c))
        ew_table_cell(t, "%.3g", c->value / p->value);
    else
        ew_table_cell(t, "%s", "");
    ew_table_cell(t, "%lld", (long long)c->runs);
    ew_table_cell(t, "%s", c->quality ? c->quality : "");
    ew_table_cell(t, "%s", p->board ? p->board : "");
    ew_table_cell(t, "%s%s", p->place ? p->place : "", p->wrong ? " (!)" : "");
}

static ew_err print_comparison(const struct ew_study *study,
                               const struct ew_published_comparison *list)
{
    static const char *const head[] = {"figure", "of",   "published", "here",         "unit",
                                       "ratio",  "runs", "quality",   "published on", "where"};
    struct ew_table t;
    ew_table_init(&t, "llrrlrrlll");
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    int others = 0;
    for (int i = 0; i < study->n_published; i++) {
        if (strstr(study->published[i].metric,
                   "_fit_")) /* a regression over many runs, not of a single run */
            continue;
        others += list[i].jobs == 0;
        if (list[i].jobs)
            compare_row(&t, study, &list[i]);
    }
    printf("\n");
    EW_TRY(ew_table_print(&t, stdout));
    if (others)
        printf("%d more published figures belong to jobs that this run leaves out\n", others);
    for (int i = 0; i < study->n_published; i++)
        if (list[i].jobs && study->published[i].wrong)
            printf("(!) %s %s, %s: %s\n", study->published[i].metric, study->published[i].settings,
                   study->published[i].place ? study->published[i].place : "",
                   study->published[i].wrong);
    const char *cite = NULL;
    for (int i = 0; i < study->n_published; i++)
        if (study->published[i].cite && study->published[i].cite != cite) {
            cite = study->published[i].cite;
            printf("published: %s\n", cite);
        }
    return EW_OK;
}

static void print_differences(const struct ew_study *study, const struct ew_machine_row *m)
{
    char model[EW_STUDY_VALUE] = "";
    if (study->n_jobs)
        ew_study_value(&study->jobs[0], "simulate", model);
    if (*model)
        printf("here: a model of %.*s\n", (int)strcspn(model, ":"), model);
    else
        printf("here: %s%s, %s, %lld of %lld cores on\n", m->board ? m->board : "unknown board",
               m->virtual_machine ? " (virtual machine)" : "", m->cpu ? m->cpu : "unknown CPU",
               (long long)m->cores_online, (long long)m->cores);
    if (study->quick)
        printf("differs: --quick runs a reduced size\n");
    for (const char *p = study->differs; p && *p;) {
        const int n = (int)strcspn(p, "\n");
        printf("differs: %.*s\n", n, p);
        p += n + (p[n] == '\n');
    }
}

ew_err ew_study_show_results(const struct ew_study *study, struct ew_store *s,
                             const struct ew_machine_row *m)
{
    struct ew_rows *rows;
    struct ew_published_comparison *list;
    struct ew_arena a;
    printf("%s\n\n", study->title);
    EW_TRY(open_results(study, s, m, &rows));
    ew_err err = ew_results_table(rows, study->show, true);
    const ew_err read = ew_rows_free(rows);
    EW_TRY(err);
    EW_TRY(read);
    ew_arena_init(&a);
    err = ew_published_compare(s, study, m->unit, &a, &list);
    if (err == EW_OK && study->n_published)
        err = print_comparison(study, list);
    ew_arena_fini(&a);
    if (err == EW_OK)
        print_differences(study, m);
    return err;
}

static ew_err json_comparison(struct ew_json *j, const struct ew_study *study, struct ew_store *s,
                              const char *unit)
{
    struct ew_arena a;
    struct ew_published_comparison *list;
    ew_arena_init(&a);
    const ew_err err = ew_published_compare(s, study, unit, &a, &list);
    ew_json_array(j, "published");
    for (int i = 0; err == EW_OK && i < study->n_published; i++) {
        ew_json_object(j, NULL);
        ew_record_json(j, EW_RECORD_PUBLISHED, list[i].published);
        ew_json_int(j, "runs", list[i].runs);
        ew_json_num(j, "here", list[i].value);
        ew_json_num(j, "here_spread", list[i].spread);
        ew_json_str(j, "here_quality", list[i].quality);
        ew_json_end(j);
    }
    ew_json_end(j);
    ew_arena_fini(&a);
    return err;
}

ew_err ew_study_json_results(const struct ew_study *study, struct ew_store *s,
                             const struct ew_machine_row *m, const struct ew_runner_counts *c)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "study", study->name);
    ew_json_str(&j, "title", study->title);
    ew_json_bool(&j, "quick", study->quick);
    ew_json_int(&j, "jobs", c->total);
    ew_json_int(&j, "done", c->done + c->known);
    ew_json_int(&j, "failed", c->failed);
    ew_json_int(&j, "skipped", c->skipped);
    ew_json_str(&j, "differs", study->differs);
    const ew_err err = json_comparison(&j, study, s, m->unit);
    ew_json_end(&j);
    const ew_err written = ew_json_finish(&j);
    return err == EW_OK ? written : err;
}
