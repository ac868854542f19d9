/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons. */
#include "report/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/figure_key.h"
#include "report/figure_stat.h"

/* ---- Choosing runs ---- */

static bool is_of(const struct ew_run_data *d, const char *side, struct ew_arena *a)
{
    static const char *const names[] = {"board",      "unit",  "profile", "version",
                                        "power_mode", "study", "machine"};
    const char *eq = strchr(side, '=');
    if (eq) {
        const char *name = ew_arena_printf(a, "%.*s", (int)(eq - side), side);
        const char *value = name ? ew_run_property(d, name, a) : NULL;
        return value && strcmp(value, eq + 1) == 0;
    }
    for (size_t i = 0; i < EW_COUNT(names); i++) {
        const char *value = ew_run_property(d, names[i], a);
        if (value && strcasecmp(value, side) == 0)
            return true;
    }
    return d->run.uid && strlen(side) >= 4 && strncmp(d->run.uid, side, strlen(side)) == 0;
}

ew_err ew_compare_choose(struct ew_results *r, const char *const side[2])
{
    for (int k = 0; k < 2; k++) {
        int n = 0;
        for (int i = 0; i < r->n_runs; i++)
            if (!r->runs[i].side && is_of(&r->runs[i], side[k], &r->arena)) {
                r->runs[i].side = side[k];
                n++;
            }
        EW_CHECK(n, EW_ERR_NOT_FOUND,
                 "%s: matches no run (give a file.db, a board, unit, version, power mode, study, "
                 "run, or property=value)",
                 side[k]);
    }
    return EW_OK;
}

static bool same_job(const struct ew_run_data *a, const struct ew_run_data *b)
{
    return a->job.id && b->job.id && strcmp(a->job.id, b->job.id) == 0;
}

static bool has_partner(const struct ew_results *r, int i)
{
    for (int j = 0; j < r->n_runs; j++)
        if (r->runs[j].side && r->runs[i].side && strcmp(r->runs[j].side, r->runs[i].side) != 0 &&
            ew_run_counts(&r->runs[j]) && same_job(&r->runs[i], &r->runs[j]))
            return true;
    return false;
}

static bool same_kind(const struct ew_run_data *a, const struct ew_run_data *b)
{
    const char *const pair[][2] = {{a->job.command, b->job.command},
                                   {a->job.network, b->job.network}};
    for (size_t i = 0; i < EW_COUNT(pair); i++)
        if (strcmp(pair[i][0] ? pair[i][0] : "", pair[i][1] ? pair[i][1] : "") != 0)
            return false;
    return true;
}

/* Names all jobs of the command and network of run `first`: "train lenet5, workers 4", with the
 * fewest options that tell them apart. */
static ew_err name_kind(struct ew_results *r, int first, const char *const *keys)
{
    struct ew_arena *a = &r->arena;
    struct ew_key_set set = {.names = "\n"};
    for (int i = first; i < r->n_runs; i++)
        if (same_kind(&r->runs[first], &r->runs[i]))
            EW_TRY(ew_key_set_add(&set, keys[i], a));
    EW_TRY(ew_key_set_trim(&set, a));
    for (int i = first; i < r->n_runs; i++) {
        struct ew_run_data *d = &r->runs[i];
        if (!same_kind(&r->runs[first], d))
            continue;
        const char *more = ew_key_label(keys[i], set.names, false, a);
        EW_CHECK(more, EW_ERR_MEMORY, "no memory for the comparison");
        d->run.label =
            ew_arena_printf(a, "%s %s%s%s", d->job.command ? d->job.command : "",
                            d->job.network ? d->job.network : "", *more ? ", " : "", more);
        EW_CHECK(d->run.label, EW_ERR_MEMORY, "no memory for the comparison");
    }
    return EW_OK;
}

static ew_err name_jobs(struct ew_results *r)
{
    const char **keys = ew_arena_array(&r->arena, (size_t)r->n_runs + 1, sizeof(*keys));
    EW_CHECK(keys, EW_ERR_MEMORY, "no memory for the comparison");
    for (int i = 0; i < r->n_runs; i++) {
        keys[i] = ew_key_options(&r->runs[i], "command network dataset", &r->arena);
        EW_CHECK(keys[i], EW_ERR_MEMORY, "no memory for the comparison");
    }
    for (int i = 0; i < r->n_runs; i++) {
        bool done = false;
        for (int j = 0; j < i && !done; j++)
            done = same_kind(&r->runs[i], &r->runs[j]);
        if (!done)
            EW_TRY(name_kind(r, i, keys));
    }
    return EW_OK;
}

ew_err ew_compare_match(struct ew_results *r, const char *const side[2])
{
    bool *keep = ew_arena_array(&r->arena, (size_t)r->n_runs + 1, sizeof(*keep));
    EW_CHECK(keep, EW_ERR_MEMORY, "no memory for the comparison");
    for (int i = 0; i < r->n_runs; i++)
        keep[i] = ew_run_counts(&r->runs[i]) && has_partner(r, i);
    int n = 0;
    for (int i = 0; i < r->n_runs; i++)
        if (keep[i])
            r->runs[n++] = r->runs[i];
    r->n_runs = n;
    EW_CHECK(n, EW_ERR_NOT_FOUND, "%s and %s have no finished job in common", side[0], side[1]);
    return name_jobs(r);
}

/* ---- The table ---- */

struct measure {
    const char *name, *label, *unit;
    int better;
    const struct ew_field *field; /* of epochs; NULL: a metric */
};

static double mean_of_epochs(const struct ew_run_data *d, const struct ew_field *f)
{
    double sum = 0;
    int n = 0;
    for (int e = 0; e < d->n_epochs; e++) {
        const void *at = (const char *)&d->epochs[e] + f->offset;
        if ((d->n_epochs > 1 && e == 0) || ew_field_absent(f, &d->epochs[e]))
            continue;
        sum += f->type == EW_FIELD_FLOAT ? *(const double *)at : (double)*(const int64_t *)at;
        n++;
    }
    return n ? sum / n : (double)NAN;
}

static double value_of(const struct ew_run_data *d, const struct measure *m)
{
    if (m->field)
        return mean_of_epochs(d, m->field);
    for (int i = 0; i < d->n_metrics; i++)
        if (d->metrics[i].name && strcmp(d->metrics[i].name, m->name) == 0)
            return d->metrics[i].value;
    return NAN;
}

/* Quality of the side's values: that of its first run, since runs of one job have the same
 * quality. */
static int quality_of(const struct ew_results *r, const struct ew_run_data *job, const char *side)
{
    for (int i = 0; i < r->n_runs; i++)
        if (same_job(job, &r->runs[i]) && strcmp(r->runs[i].side, side) == 0)
            return r->runs[i].run.quality;
    return EW_QUALITY_MEASURED;
}

static ew_err collect(const struct ew_results *r, const struct ew_run_data *job, const char *side,
                      const struct measure *m, struct ew_arena *a, struct ew_stat *out)
{
    double *v = ew_arena_array(a, (size_t)r->n_runs, sizeof(*v));
    int n = 0;
    EW_CHECK(v, EW_ERR_MEMORY, "no memory for the comparison");
    for (int i = 0; i < r->n_runs; i++) {
        if (!same_job(job, &r->runs[i]) || strcmp(r->runs[i].side, side) != 0)
            continue;
        v[n] = value_of(&r->runs[i], m);
        n += isfinite(v[n]) != 0;
    }
    ew_stat_of(v, n, out);
    return EW_OK;
}

/* 97.5 % quantile of Student's t, from tables (two-sided 95 %). */
static double t_quantile(double df)
{
    static const double t[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23};
    const int i = (int)df - 1;
    return i < 0 ? t[0] : i < (int)EW_COUNT(t) ? t[i] : df < 30 ? 2.09 : 1.98;
}

/* Whether the means differ significantly: Welch's t-test, 5 %. */
static bool differs(const struct ew_stat *a, const struct ew_stat *b)
{
    const double va = a->sd * a->sd / a->n, vb = b->sd * b->sd / b->n, se = sqrt(va + vb);
    const double df = (va + vb) * (va + vb) / (va * va / (a->n - 1) + vb * vb / (b->n - 1));
    return fabs(b->mean - a->mean) > (se > 0 ? t_quantile(df) * se : 0);
}

/* Values without spread (a score with a fixed seed, planned bytes) differ with certainty; Welch's
 * test covers the others. */
static const char *verdict(const struct ew_stat *a, const struct ew_stat *b, int better)
{
    const bool steady = !(a->sd > 0) && !(b->sd > 0);
    if (a->n < 2 || b->n < 2)
        return "unclear: one run";
    if (!differs(a, b))
        return steady ? "same" : "same within noise";
    if (better == EW_BETTER_NEITHER)
        return "differs";
    if ((b->mean > a->mean) == (better == EW_BETTER_HIGHER))
        return steady ? "better in every run" : "better";
    return steady ? "worse in every run" : "worse";
}

static ew_err put_stat(struct ew_grid *g, const struct ew_stat *s, double scale)
{
    char a[EW_VALUE_CHARS], b[EW_VALUE_CHARS];
    if (isfinite(s->sd))
        return ew_grid_cell(g, "%s ± %s (%d)", ew_text_value(s->mean * scale, a),
                            ew_text_value(s->sd * scale, b), s->n);
    return ew_grid_cell(g, "%s", ew_text_value(s->mean * scale, a));
}

static ew_err row(const struct ew_results *r, const struct ew_run_data *job,
                  const char *const side[2], const struct measure *m, struct ew_grid *g)
{
    struct ew_stat s[2];
    struct ew_axis axis;
    EW_TRY(collect(r, job, side[0], m, &g->arena, &s[0]));
    EW_TRY(collect(r, job, side[1], m, &g->arena, &s[1]));
    if (!s[0].n || !s[1].n)
        return EW_OK;
    ew_axis_fill(&axis, m->label, m->unit, m->better);
    EW_TRY(ew_grid_put(g, job->run.label));
    EW_TRY(*axis.unit ? ew_grid_cell(g, "%s [%s]", axis.label, axis.unit)
                      : ew_grid_put(g, axis.label));
    EW_TRY(put_stat(g, &s[0], axis.scale));
    EW_TRY(put_stat(g, &s[1], axis.scale));
    EW_TRY(fabs(s[0].mean) > 0 ? ew_grid_cell(g, "%.3f", s[1].mean / s[0].mean)
                               : ew_grid_put(g, ""));
    EW_TRY(ew_grid_put(g, verdict(&s[0], &s[1], m->better)));
    const int q[2] = {quality_of(r, job, side[0]), quality_of(r, job, side[1])};
    return q[0] == q[1]
               ? ew_grid_put(g, ew_figure_quality(q[0]))
               : ew_grid_cell(g, "%s against %s", ew_figure_quality(q[0]), ew_figure_quality(q[1]));
}

static ew_err epoch_rows(const struct ew_results *r, const struct ew_run_data *job,
                         const char *const side[2], struct ew_grid *g)
{
    static const char *const names[] = {"wall_s",   "stall_s", "images_per_s",  "energy_j",
                                        "accuracy", "f1",      "rss_peak_bytes"};
    for (size_t i = 0; i < EW_COUNT(names); i++) {
        const struct ew_field *f = ew_field_find(ew_record_kind(EW_RECORD_EPOCH)->fields, names[i]);
        const int better = strcmp(names[i], "rss_peak_bytes") ? (int)f->better : EW_BETTER_LOWER;
        EW_TRY(row(r, job, side, &(struct measure){f->name, f->help, f->unit, better, f}, g));
    }
    return EW_OK;
}

/* Whether the metric repeats a field of the epochs, as the summary of a run does for each. */
static bool is_of_epochs(const char *name)
{
    static const char suffix[] = "_first";
    const size_t n = strlen(name), m = sizeof(suffix) - 1;
    char base[64];
    snprintf(base, sizeof(base), "%.*s",
             (int)(n > m && strcmp(name + n - m, suffix) == 0 ? n - m : n), name);
    return strcmp(base, "epoch_s") == 0 || strncmp(base, "batch_", 6) == 0 ||
           ew_field_find(ew_record_kind(EW_RECORD_EPOCH)->fields, base);
}

static ew_err metric_rows(const struct ew_results *r, const struct ew_run_data *job,
                          const char *const side[2], struct ew_grid *g)
{
    for (int i = 0; i < job->n_metrics; i++) {
        const struct ew_metric_row *m = &job->metrics[i];
        if (!m->name || strchr(m->name, ':') /* cells of a matrix */ ||
            m->better == EW_BETTER_NEITHER || (job->n_epochs && is_of_epochs(m->name)))
            continue;
        EW_TRY(row(r, job, side, &(struct measure){m->name, m->name, m->unit, m->better, NULL}, g));
    }
    return EW_OK;
}

ew_err ew_compare_grid(const struct ew_results *r, const char *const side[2], struct ew_grid *g)
{
    EW_TRY(ew_grid_head(g, false, "job"));
    EW_TRY(ew_grid_head(g, false, "measure"));
    EW_TRY(ew_grid_head(g, true, "%s", side[0]));
    EW_TRY(ew_grid_head(g, true, "%s", side[1]));
    EW_TRY(ew_grid_head(g, true, "ratio"));
    EW_TRY(ew_grid_head(g, false, "verdict"));
    EW_TRY(ew_grid_head(g, false, "quality"));
    for (int i = 0; i < r->n_runs; i++) {
        bool seen = false;
        for (int j = 0; j < i && !seen; j++)
            seen = same_job(&r->runs[i], &r->runs[j]);
        if (seen)
            continue;
        EW_TRY(epoch_rows(r, &r->runs[i], side, g));
        EW_TRY(metric_rows(r, &r->runs[i], side, g));
    }
    return EW_OK;
}

/* ---- In words ---- */

/* Ratio of side B to side A of one measure, over the jobs for which both have it. */
struct ratios {
    int jobs, repeated; /* repeated: more than one run on each side */
    int apart;          /* of those: jobs with a significant difference */
    double mean;        /* geometric */
    double least, most;
    const char *least_job, *most_job;
};

static bool is_first_of_job(const struct ew_results *r, int i)
{
    for (int j = 0; j < i; j++)
        if (same_job(&r->runs[i], &r->runs[j]))
            return false;
    return true;
}

static ew_err divide(const struct ew_results *r, const char *const side[2], const struct measure *m,
                     struct ratios *out)
{
    struct ew_arena a;
    struct ew_stat s[2];
    double sum = 0;
    ew_err e = EW_OK;
    ew_arena_init(&a);
    *out = (struct ratios){.least = HUGE_VAL};
    for (int i = 0; e == EW_OK && i < r->n_runs; i++) {
        if (!is_first_of_job(r, i))
            continue;
        ew_arena_reset(&a); /* of the job before */
        for (int k = 0; e == EW_OK && k < 2; k++)
            e = collect(r, &r->runs[i], side[k], m, &a, &s[k]);
        if (e != EW_OK || !(s[0].mean > 0) || !(s[1].mean > 0))
            continue;
        const double ratio = s[1].mean / s[0].mean;
        sum += log(ratio);
        out->jobs++;
        out->repeated += s[0].n > 1 && s[1].n > 1;
        out->apart += s[0].n > 1 && s[1].n > 1 && differs(&s[0], &s[1]);
        if (ratio < out->least) {
            out->least = ratio;
            out->least_job = r->runs[i].run.label;
        }
        if (ratio > out->most) {
            out->most = ratio;
            out->most_job = r->runs[i].run.label;
        }
    }
    out->mean = exp(sum / fmax(out->jobs, 1));
    ew_arena_fini(&a);
    return e;
}

static void say_ratios(const char *what, const char *const side[2], const struct ratios *x,
                       char *out)
{
    snprintf(out, EW_FINDING_CHARS, "%s: %.40s takes %.3g times as much as %.40s", what, side[1],
             x->mean, side[0]);
    if (x->jobs == 1)
        ew_text_add(out, EW_FINDING_CHARS, " (%.60s)", x->least_job);
    else
        ew_text_add(out, EW_FINDING_CHARS,
                    ", the geometric mean of %d jobs; from %.3g (%.50s) to %.3g (%.50s)", x->jobs,
                    x->least, x->least_job, x->most, x->most_job);
    if (x->repeated && !x->apart)
        ew_text_add(out, EW_FINDING_CHARS, "; all within noise.");
    else if (x->repeated)
        ew_text_add(out, EW_FINDING_CHARS, "; beyond noise in %d of %d.", x->apart, x->repeated);
    else
        ew_text_add(out, EW_FINDING_CHARS, ".");
}

/* A machine property of one side; NULL: absent, or not the same in all its runs. */
static const char *of_side(const struct ew_results *r, const char *side, const char *field,
                           struct ew_arena *a)
{
    const char *text = NULL;
    for (int i = 0; i < r->n_runs; i++) {
        const char *own =
            strcmp(r->runs[i].side, side) == 0 ? ew_run_property(&r->runs[i], field, a) : NULL;
        if (text && own && strcmp(text, own) != 0)
            return NULL;
        text = text ? text : own;
    }
    return text;
}

/* Lists the differences of machine and software between the sides, the possible causes of a
 * ratio. */
static void say_software(const struct ew_results *r, const char *const side[2], char *out)
{
    static const char *const fields[][2] = {
        {"board", "board"},           {"cpu", "CPU"},           {"unit", "device"},
        {"power_mode", "power mode"}, {"governor", "governor"}, {"kernel", "kernel"},
        {"system", "system"},         {"version", "Edgewise"},  {"isa", "instruction set"},
        {"compiler", "compiler"}};
    struct ew_arena a;
    ew_arena_init(&a);
    out[0] = '\0';
    for (size_t i = 0; i < EW_COUNT(fields); i++) {
        const char *const x = of_side(r, side[0], fields[i][0], &a);
        const char *const y = of_side(r, side[1], fields[i][0], &a);
        if (x && y && strcmp(x, y) != 0)
            ew_text_add(out, EW_FINDING_CHARS - 1, "%s%s (%.32s, %.32s)",
                        *out ? ", " : "Machine and software differ in ", fields[i][1], x, y);
    }
    if (!*out)
        ew_text_add(out, EW_FINDING_CHARS,
                    "Machine, kernel, version of Edgewise and compiler are the same on both sides");
    ew_arena_fini(&a);
    ew_text_add(out, EW_FINDING_CHARS, ".");
}

int ew_compare_findings(const struct ew_results *r, const char *const side[2],
                        char text[EW_FINDINGS][EW_FINDING_CHARS])
{
    static const struct {
        const char *name, *what;
        bool epochs;
    } measures[] = {{"wall_s", "Time of an epoch", true},
                    {"median_ms", "Latency", false},
                    {"energy_j", "Energy of an epoch", true}};
    int n = 1, jobs = 0, repeated = 0;
    for (int i = 0; i < r->n_runs; i++)
        jobs += is_first_of_job(r, i);
    snprintf(text[0], EW_FINDING_CHARS, "%d %s done on both sides, in %d runs.", jobs,
             jobs == 1 ? "job was" : "jobs were", r->n_runs);
    say_software(r, side, text[n++]);
    for (size_t i = 0; i < EW_COUNT(measures); i++) {
        const struct ew_field *f =
            measures[i].epochs
                ? ew_field_find(ew_record_kind(EW_RECORD_EPOCH)->fields, measures[i].name)
                : NULL;
        const struct measure m = {.name = measures[i].name, .field = f};
        struct ratios x;
        if (divide(r, side, &m, &x) != EW_OK || !x.jobs)
            continue;
        say_ratios(measures[i].what, side, &x, text[n++]);
        repeated += x.repeated;
    }
    if (!repeated && n < EW_FINDINGS)
        snprintf(text[n++], EW_FINDING_CHARS,
                 "No job was run twice on both sides, so noise cannot be estimated: study --repeat "
                 "3 repeats them.");
    return n;
}

/* ---- Figures ---- */

ew_err ew_compare_order(struct ew_figure *f, const char *const side[2], struct ew_arena *a)
{
    const size_t len = strlen(side[0]);
    struct ew_series *series = ew_arena_array(a, (size_t)f->n_series + 1, sizeof(*series));
    struct ew_group *groups = ew_arena_array(a, (size_t)f->n_groups + 1, sizeof(*groups));
    int *place = ew_arena_array(a, (size_t)f->n_groups + 1, sizeof(*place));
    EW_CHECK(series && groups && place, EW_ERR_MEMORY, "no memory for the comparison");
    int n_series = 0, n_groups = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < f->n_series; i++)
            if ((strncmp(f->series[i].name, side[0], len) != 0) == pass)
                series[n_series++] = f->series[i];
        for (int i = 0; i < f->n_groups; i++)
            if ((strncmp(f->groups[i].series, side[0], len) != 0) == pass) {
                place[i] = n_groups;
                groups[n_groups++] = f->groups[i];
            }
    }
    for (int i = 0; i < n_series; i++) {
        series[i].colour = i;
        for (int k = 0; k < series[i].n_points; k++)
            if (series[i].points[k].group)
                series[i].points[k].group = &groups[place[series[i].points[k].group - f->groups]];
    }
    f->series = series;
    f->groups = groups;
    return EW_OK;
}
