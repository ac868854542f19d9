/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of one run each: channels over time, and the confusion matrix. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/figure_obs.h"
#include "report/figure_stat.h"

#define MOST_CHANNELS 4
#define MOST_POINTS   400 /* of a channel: as many as a screen can resolve */
#define MOST_CLASSES  64  /* a larger matrix cannot be read */
#define MOST_RUNS     4   /* most runs that get a figure of one kind */

struct choice {
    const struct ew_run_data **runs;
    int n;
};

/* How suitable a run is as an example; negative: it has no data for the figure. */
typedef double score_fn(const struct ew_run_data *d, const char *name);

/* The best example of each value of the facet: runs[n]. */
static ew_err choose(const struct ew_figure_desc *d, const struct ew_results *r, const char *study,
                     score_fn *score, struct ew_arena *a, struct choice *out)
{
    const char **facets = ew_arena_array(a, (size_t)r->n_runs + 1, sizeof(*facets));
    double *best = ew_arena_array(a, (size_t)r->n_runs + 1, sizeof(*best));
    out->runs = ew_arena_array(a, (size_t)r->n_runs + 1, sizeof(*out->runs));
    out->n = 0;
    EW_CHECK(facets && best && out->runs, EW_ERR_MEMORY, "no memory for figure %s", d->id);
    for (int i = 0; i < r->n_runs; i++) {
        const struct ew_run_data *run = &r->runs[i];
        const double s = ew_figure_takes(d, run, study) ? score(run, d->y[0].name) : -1;
        if (s < 0)
            continue;
        const char *facet = ew_obs_property(run, d->facet, a);
        const int at = ew_text_intern(facets, &out->n, facet ? facet : "");
        if (!out->runs[at] || s >= best[at]) {
            out->runs[at] = run;
            best[at] = s;
        }
    }
    return EW_OK;
}

/* Order of runs: training first, then the latest. */
static int by_start(const void *a, const void *b)
{
    const struct ew_run_data *p = *(const struct ew_run_data *const *)a;
    const struct ew_run_data *q = *(const struct ew_run_data *const *)b;
    if ((p->n_epochs > 0) != (q->n_epochs > 0))
        return p->n_epochs > 0 ? -1 : 1;
    return strcmp(q->run.started ? q->run.started : "", p->run.started ? p->run.started : "");
}

/* Keeps at most MOST_RUNS runs, and only training if there is any; returns how many are left
 * out. */
static int cut(struct choice *c)
{
    qsort(c->runs, (size_t)c->n, sizeof(*c->runs), by_start);
    while (c->n > 1 && c->runs[0]->n_epochs > 0 && c->runs[c->n - 1]->n_epochs == 0)
        c->n--;
    const int all = c->n;
    c->n = all < MOST_RUNS ? all : MOST_RUNS;
    return all - c->n;
}

static ew_err say_missing(struct ew_figures *out, const struct ew_figure_desc *d, const char *why)
{
    struct ew_figure *f;
    EW_TRY(ew_figures_add(out, d, "", &f));
    f->missing = why;
    return EW_OK;
}

static ew_err begin(struct ew_figures *out, const struct ew_figure_desc *d,
                    const struct ew_run_data *run, struct ew_figure **f)
{
    const char *facet = ew_obs_property(run, d->facet, &out->arena);
    EW_TRY(ew_figures_add(out, d, facet ? facet : "", f));
    (*f)->runs = 1;
    (*f)->noisy = run->run.noise != NULL;
    return EW_OK;
}

/* ---- Channels over time ---- */

/* Score of a run: the length of its trace. */
static double trace_score(const struct ew_run_data *d, const char *unit)
{
    int n = 0;
    for (int i = 0; i < d->n_samples; i++)
        n += d->samples[i].unit && strcmp(d->samples[i].unit, unit) == 0;
    return n ? n : -1;
}

struct channel {
    const char *name;
    int quality, n;
    double sum;
};

/* Order of channels: parts of a total (cpu0.load of cpu.load) last, else the largest mean first. */
static int by_interest(const void *a, const void *b)
{
    const struct channel *p = a, *q = b;
    const size_t pn = strcspn(p->name, "0123456789"), qn = strcspn(q->name, "0123456789");
    const bool p_part = p->name[pn] && strchr(p->name + pn, '.');
    const bool q_part = q->name[qn] && strchr(q->name + qn, '.');
    if (p_part != q_part)
        return p_part ? 1 : -1;
    const double d = q->sum / q->n - p->sum / p->n;
    return d > 0 ? 1 : d < 0 ? -1 : strcmp(p->name, q->name);
}

static int list_channels(const struct ew_run_data *run, const char *unit, struct channel *v,
                         int room)
{
    int n = 0;
    for (int i = 0; i < run->n_samples; i++) {
        const struct ew_sample_row *s = &run->samples[i];
        if (!s->unit || !s->channel || strcmp(s->unit, unit) != 0 || !isfinite(s->value))
            continue;
        int k = 0;
        while (k < n && (strcmp(v[k].name, s->channel) != 0 || v[k].quality != s->quality))
            k++;
        if (k == n && n == room)
            continue;
        if (k == n)
            v[n++] = (struct channel){.name = s->channel, .quality = s->quality};
        v[k].n++;
        v[k].sum += s->value;
    }
    qsort(v, (size_t)n, sizeof(*v), by_interest);
    return n < MOST_CHANNELS ? n : MOST_CHANNELS;
}

static void shorten(struct ew_series *s)
{
    for (int i = 0; i < s->n_points; i++) {
        struct ew_point *p = &s->points[i];
        p->x = ew_stat_brief(p->x);
        p->y = ew_stat_brief(p->y);
        p->low = ew_stat_brief(p->low);
        p->high = ew_stat_brief(p->high);
    }
}

/* Reduces a trace to the mean, lowest and highest value of equal stretches of time. */
static void thin(struct ew_series *s, double t_end)
{
    int kept = 0;
    const double width = t_end / MOST_POINTS;
    if (s->n_points <= MOST_POINTS || width <= 0)
        return;
    for (int i = 0; i < s->n_points;) {
        const double end = (floor(s->points[i].x / width) + 1) * width;
        struct ew_point sum = {.low = INFINITY, .high = -INFINITY};
        int n = 0;
        for (; i < s->n_points && (n == 0 || s->points[i].x < end); i++, n++) {
            sum.x += s->points[i].x;
            sum.y += s->points[i].y;
            sum.low = fmin(sum.low, s->points[i].y);
            sum.high = fmax(sum.high, s->points[i].y);
        }
        sum.x /= n;
        sum.y /= n;
        s->points[kept++] = sum;
    }
    s->n_points = kept;
}

static ew_err trace_channel(struct ew_arena *a, struct ew_figure *f, const struct ew_run_data *run,
                            const struct channel *c)
{
    struct ew_series *s = &f->series[f->n_series];
    struct ew_group *g = &f->groups[f->n_groups];
    double *v = ew_arena_array(a, (size_t)c->n, sizeof(*v)), t_end = 0;
    *s = (struct ew_series){.name = c->name,
                            .shape = EW_SHAPE_LINE,
                            .colour = f->n_series,
                            .quality = c->quality,
                            .points = ew_arena_array(a, (size_t)c->n, sizeof(*s->points))};
    EW_CHECK(v && s->points, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    for (int i = 0; i < run->n_samples; i++) {
        const struct ew_sample_row *row = &run->samples[i];
        if (!row->channel || strcmp(row->channel, c->name) != 0 || row->quality != c->quality ||
            !isfinite(row->value) || s->n_points == c->n)
            continue;
        v[s->n_points] = row->value * f->y[0].scale;
        s->points[s->n_points] =
            (struct ew_point){.x = row->t_s, .y = v[s->n_points], .low = NAN, .high = NAN};
        s->n_points++;
        t_end = fmax(t_end, row->t_s);
    }
    *g = (struct ew_group){.x = c->name,
                           .series = "",
                           .machine = "",
                           .options = "",
                           .quality = c->quality,
                           .runs = 1,
                           .noisy = run->run.noise != NULL};
    ew_stat_of(v, s->n_points, &g->y[0]);
    thin(s, t_end);
    shorten(s);
    f->n_series++;
    f->n_groups++;
    return EW_OK;
}

/* Places the epochs by their lengths, after the time that the run needs before the first one. */
static ew_err epoch_bands(struct ew_arena *a, struct ew_figure *f, const struct ew_run_data *run)
{
    double t = 0, all = 0;
    for (int e = 0; e < run->n_epochs; e++)
        all +=
            run->epochs[e].wall_s + (isfinite(run->epochs[e].eval_s) ? run->epochs[e].eval_s : 0);
    if (!isfinite(all) || run->n_epochs > 50)
        return EW_OK;
    if (isfinite(run->run.wall_s) && run->run.wall_s > all)
        t = run->run.wall_s - all;
    f->bands = ew_arena_array(a, (size_t)run->n_epochs * 2 + 1, sizeof(*f->bands));
    EW_CHECK(f->bands, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    if (t > 0 && run->n_epochs)
        f->bands[f->n_bands++] = (struct ew_band){"start", 0, t};
    for (int e = 0; e < run->n_epochs; e++) {
        const double end = t + run->epochs[e].wall_s, eval = run->epochs[e].eval_s;
        const char *name = ew_arena_printf(a, "epoch %lld", (long long)run->epochs[e].epoch);
        EW_CHECK(name, EW_ERR_MEMORY, "no memory for figure %s", f->id);
        f->bands[f->n_bands++] = (struct ew_band){name, t, end};
        t = end;
        if (isfinite(eval) && eval > 0) {
            f->bands[f->n_bands++] = (struct ew_band){"validation", t, t + eval};
            t += eval;
        }
    }
    return EW_OK;
}

/* A field of the epochs on the right axis, each at the epoch's end; absent ones are left out. */
static ew_err trace_epochs(struct ew_arena *a, struct ew_figure *f, const struct ew_run_data *run)
{
    const struct ew_figure_y *y = &f->desc->y[1];
    const struct ew_field *field = ew_field_find(ew_record_kind(EW_RECORD_EPOCH)->fields, y->name);
    struct ew_series s = {.name = y->label,
                          .shape = EW_SHAPE_LINE,
                          .colour = f->n_series,
                          .right = true,
                          .quality = EW_QUALITY_MEASURED,
                          .points =
                              ew_arena_array(a, (size_t)run->n_epochs + 1, sizeof(*s.points))};
    EW_CHECK(s.points, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    for (int i = 0, e = 0; field && i < f->n_bands && e < run->n_epochs; i++) {
        double v;
        if (strncmp(f->bands[i].name, "epoch", 5) != 0)
            continue;
        memcpy(&v, (const char *)&run->epochs[e++] + field->offset, sizeof(v));
        if (isfinite(v))
            s.points[s.n_points++] =
                (struct ew_point){.x = f->bands[i].to, .y = v, .low = NAN, .high = NAN};
    }
    if (!s.n_points)
        return EW_OK;
    ew_axis_fill(&f->y[1], y->label, field->unit, EW_BETTER_NEITHER);
    f->series[f->n_series++] = s;
    return EW_OK;
}

static ew_err trace_run(struct ew_figures *out, const struct ew_figure_desc *d,
                        const struct ew_run_data *run)
{
    struct channel channels[64];
    struct ew_figure *f;
    struct ew_arena *a = &out->arena;
    EW_TRY(begin(out, d, run, &f));
    const int n = list_channels(run, d->y[0].name, channels, (int)EW_COUNT(channels));
    ew_axis_fill(&f->x, "time since the run began", "s", EW_BETTER_NEITHER);
    ew_axis_fill(&f->y[0], d->y[0].label, d->y[0].name, EW_BETTER_LOWER);
    f->measure[0] = f->y[0];
    f->n_measures = 1;
    f->series = ew_arena_array(a, (size_t)n + 2, sizeof(*f->series));
    f->groups = ew_arena_array(a, (size_t)n + 1, sizeof(*f->groups));
    EW_CHECK(f->series && f->groups, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    for (int i = 0; i < n; i++)
        EW_TRY(trace_channel(a, f, run, &channels[i]));
    EW_TRY(epoch_bands(a, f, run));
    return d->y[1].name ? trace_epochs(a, f, run) : EW_OK;
}

ew_err ew_figure_trace(struct ew_figures *out, const struct ew_figure_desc *d,
                       const struct ew_results *r, const char *study)
{
    struct choice c;
    EW_TRY(choose(d, r, study, trace_score, &out->arena, &c));
    const int left_out = cut(&c);
    for (int i = 0; i < c.n; i++)
        EW_TRY(trace_run(out, d, c.runs[i]));
    if (c.n) {
        out->v[out->n - 1].left_out = left_out;
        return EW_OK;
    }
    const char *why = ew_arena_printf(&out->arena, "no run has samples in %s", d->y[0].name);
    EW_CHECK(why, EW_ERR_MEMORY, "no memory for figure %s", d->id);
    return say_missing(out, d, why);
}

/* ---- The confusion matrix ---- */

/* "confusion:TRUE:PREDICTED" into its two classes; false: another metric. */
static bool classes_of(const char *metric, const char *name, struct ew_arena *a, const char **is,
                       const char **given)
{
    const size_t len = strlen(name);
    if (!metric || strncmp(metric, name, len) != 0 || metric[len] != ':')
        return false;
    if (!a)
        return true;
    const char *rest = metric + len + 1, *cut = strrchr(rest, ':');
    if (!cut)
        return false;
    *is = ew_arena_printf(a, "%.*s", (int)(cut - rest), rest);
    *given = cut + 1;
    return *is != NULL;
}

/* Score of a run: the accuracy by its confusion matrix, so that untrained networks are not
 * chosen. */
static double matrix_score(const struct ew_run_data *d, const char *name)
{
    double right = 0, all = 0;
    for (int i = 0; i < d->n_metrics; i++) {
        const char *metric = d->metrics[i].name;
        if (!classes_of(metric, name, NULL, NULL, NULL))
            continue;
        const char *is = metric + strlen(name) + 1, *given = strrchr(is, ':');
        all += d->metrics[i].value;
        if (given && strlen(given + 1) == (size_t)(given - is) &&
            strncmp(is, given + 1, (size_t)(given - is)) == 0)
            right += d->metrics[i].value;
    }
    return all > 0 ? right / all : -1;
}

static int by_class(const void *a, const void *b)
{
    return ew_text_order(*(const char *const *)a, *(const char *const *)b);
}

static ew_err matrix_cells(struct ew_arena *a, struct ew_figure *f, const struct ew_run_data *run,
                           struct ew_series *s)
{
    const char *name = f->desc->y[0].name, *is, *given;
    for (int i = 0; i < run->n_metrics; i++) {
        if (!classes_of(run->metrics[i].name, name, a, &is, &given))
            continue;
        ew_text_intern(f->categories, &f->n_categories, is);
        ew_text_intern(f->categories, &f->n_categories, given);
    }
    qsort(f->categories, (size_t)f->n_categories, sizeof(*f->categories), by_class);
    f->rows = f->categories;
    f->n_rows = f->n_categories;
    if (f->n_categories > MOST_CLASSES)
        return EW_OK;
    s->n_points = f->n_categories * f->n_categories;
    s->points = ew_arena_array(a, (size_t)s->n_points, sizeof(*s->points));
    EW_CHECK(s->points, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    for (int i = 0; i < s->n_points; i++)
        s->points[i] =
            (struct ew_point){.x = i % f->n_categories, .low = i / f->n_categories, .high = NAN};
    for (int i = 0; i < run->n_metrics; i++) {
        if (!classes_of(run->metrics[i].name, name, a, &is, &given))
            continue;
        const int x = ew_text_intern(f->categories, &f->n_categories, given);
        const int y = ew_text_intern(f->categories, &f->n_categories, is);
        s->points[y * f->n_categories + x].y = run->metrics[i].value;
        s->quality = run->metrics[i].quality;
    }
    EW_CHECK(!a->failed, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    return EW_OK;
}

static ew_err matrix_run(struct ew_figures *out, const struct ew_figure_desc *d,
                         const struct ew_run_data *run)
{
    struct ew_figure *f;
    struct ew_arena *a = &out->arena;
    const size_t room = (size_t)run->n_metrics * 2 + 1;
    EW_TRY(begin(out, d, run, &f));
    ew_axis_fill(&f->x, "predicted class", NULL, EW_BETTER_NEITHER);
    ew_axis_fill(&f->y[0], "true class", NULL, EW_BETTER_NEITHER);
    ew_axis_fill(&f->measure[0], d->y[0].label, NULL, EW_BETTER_NEITHER);
    f->n_measures = 1;
    f->categories = ew_arena_array(a, room, sizeof(*f->categories));
    f->series = ew_arena_alloc(a, sizeof(*f->series));
    EW_CHECK(f->categories && f->series, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    *f->series = (struct ew_series){.name = d->y[0].label, .shape = EW_SHAPE_CELL};
    f->n_series = 1;
    EW_TRY(matrix_cells(a, f, run, f->series));
    if (f->n_categories > MOST_CLASSES) {
        f->missing = ew_arena_printf(a, "%d classes are too many for a picture", f->n_categories);
        f->n_series = f->n_categories = f->n_rows = 0;
    }
    return EW_OK;
}

ew_err ew_figure_matrix(struct ew_figures *out, const struct ew_figure_desc *d,
                        const struct ew_results *r, const char *study)
{
    struct choice c;
    EW_TRY(choose(d, r, study, matrix_score, &out->arena, &c));
    const int left_out = cut(&c);
    for (int i = 0; i < c.n; i++)
        EW_TRY(matrix_run(out, d, c.runs[i]));
    if (!c.n)
        return say_missing(out, d, "no run has recorded a confusion matrix");
    out->v[out->n - 1].left_out = left_out;
    return EW_OK;
}
