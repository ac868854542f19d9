/* SPDX-License-Identifier: Apache-2.0 */
/* From observations to groups: one figure for each facet, one group for each setting. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/profile.h"
#include "report/figure_key.h"
#include "report/figure_obs.h"
#include "report/figure_stat.h"

/* "time-lenet5": letters, digits and dashes. */
static const char *slug(struct ew_arena *a, const char *id, const char *facet)
{
    char *out = *facet ? ew_arena_printf(a, "%s-%s", id, facet) : ew_arena_strdup(a, id);
    for (char *p = out; p && *p; p++)
        *p = (char)(isalnum((unsigned char)*p) ? tolower((unsigned char)*p) : '-');
    return out;
}

ew_err ew_figures_add(struct ew_figures *out, const struct ew_figure_desc *d, const char *facet,
                      struct ew_figure **f)
{
    EW_TRY(ew_grow((void **)&out->v, &out->cap, out->n + 1, sizeof(*out->v)));
    struct ew_figure *new = &out->v[out->n++];
    *new = (struct ew_figure){.desc = d, .id = slug(&out->arena, d->id, facet), .facet = facet};
    new->title = *facet ? ew_arena_printf(&out->arena, "%s: %s", d->title, facet) : d->title;
    EW_CHECK(new->id &&new->title, EW_ERR_MEMORY, "no memory for figure %s", d->id);
    *f = new;
    return EW_OK;
}

static void fill_axes(struct ew_figure *f, const struct ew_obs_list *l)
{
    const struct ew_figure_desc *d = f->desc;
    bool taken[2] = {false, false};
    ew_axis_fill(&f->x, d->x_label ? d->x_label : d->x, NULL, EW_BETTER_NEITHER);
    for (int k = 0; k < EW_FIGURE_MAX_Y && d->y[k].name; k++) {
        const struct ew_measure *m = l->measure[0][k].name ? &l->measure[0][k] : &l->measure[1][k];
        const char *label = d->y[k].label;
        if (!label)
            label = m->field ? m->field->help : m->name;
        ew_axis_fill(&f->measure[k], label ? label : d->y[k].name, m->unit, m->better);
        f->n_measures = k + 1;
        struct ew_axis *axis = &f->y[d->y[k].right];
        if (!taken[d->y[k].right] && m->name)
            *axis = f->measure[k];
        taken[d->y[k].right] |= m->name != NULL;
    }
    /* Stacked measures share the axis, so it takes the name of none of them. */
    if (d->kind == EW_FIGURE_STACK)
        f->y[0].label = strcmp(f->y[0].unit, "J") == 0 ? "energy" : "time";
    if (d->kind == EW_FIGURE_POINTS) {
        f->x = f->measure[0];
        f->y[0] = f->measure[1];
    }
}

static ew_err fill_stat(struct ew_arena *a, const struct ew_obs *v, int n, int k,
                        struct ew_stat *out, double scale)
{
    double *values = ew_arena_array(a, (size_t)n, sizeof(*values));
    EW_CHECK(values, EW_ERR_MEMORY, "no memory for %d values", n);
    int used = 0, last = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(v[i].y[k])) {
            values[used++] = v[i].y[k] * scale;
            last = i;
        }
    ew_stat_of(values, used, out);
    /* A single run of many measurements brings its own spread. */
    if (used == 1 && isfinite(v[last].spread[k])) {
        out->sd = v[last].spread[k] * scale;
        out->low = isfinite(v[last].low[k]) ? v[last].low[k] * scale : out->low;
        out->high = isfinite(v[last].high[k]) ? v[last].high[k] * scale : out->high;
    }
    return EW_OK;
}

static void count_runs(const struct ew_obs *v, int n, struct ew_group *g)
{
    for (int i = 0; i < n; i++) {
        bool seen = false;
        for (int j = 0; j < i && !seen; j++)
            seen = v[j].run == v[i].run;
        g->runs += !seen;
        g->noisy += !seen && v[i].run->run.noise;
    }
}

static ew_err fill_group(struct ew_arena *a, const struct ew_figure *f, const struct ew_obs *v,
                         int n, struct ew_group *g)
{
    *g = (struct ew_group){.x = v->x,
                           .series = v->series,
                           .machine = v->machine_label,
                           .options = v->options_label,
                           .quality = v->quality};
    count_runs(v, n, g);
    for (int k = 0; k < f->n_measures; k++)
        EW_TRY(fill_stat(a, v, n, k, &g->y[k], f->measure[k].scale));
    return EW_OK;
}

/* ---- Joining runs of different jobs ---- */

static bool same_thing(const struct ew_obs *a, const struct ew_obs *b)
{
    return strcmp(a->x, b->x) == 0 && strcmp(a->series, b->series) == 0;
}

/* Gives observation `to` the mean of measure k, with its spread, over all observations that have
 * it. */
static void lend(struct ew_obs *v, int n, int to, int k)
{
    double sum = 0, squares = 0;
    int used = 0;
    for (int j = 0; j < n; j++)
        if (!isfinite(v[j].y[0]) && same_thing(&v[to], &v[j]) && isfinite(v[j].y[k])) {
            sum += v[j].y[k];
            squares += v[j].y[k] * v[j].y[k];
            used++;
        }
    if (!used)
        return;
    v[to].y[k] = sum / used;
    if (used > 1)
        v[to].spread[k] = sqrt(fmax(squares - sum * sum / used, 0) / (used - 1));
}

/* Observations that have the first measure stand; the others (an accuracy, which belongs to the
 * network and not to the machine) are averaged into each of them.  v[n] becomes groups in place. */
static int join(struct ew_obs *v, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        if (!isfinite(v[i].y[0]))
            continue;
        for (int k = 1; k < EW_FIGURE_MAX_Y; k++)
            if (!isfinite(v[i].y[k]))
                lend(v, n, i, k);
    }
    for (int i = 0; i < n; i++)
        if (isfinite(v[i].y[0]))
            v[kept++] = v[i];
    return kept;
}

/* ---- The figure ---- */

/* Lists the simulated boards without repetitions. */
static ew_err name_models(struct ew_arena *a, struct ew_figure *f, const struct ew_obs *v, int n)
{
    for (int i = 0; i < n; i++) {
        const char *board = v[i].quality == EW_QUALITY_SIMULATED ? ew_run_board(v[i].run, a) : NULL;
        if (!board || (f->models && ew_words_have(f->models, board)))
            continue;
        f->models = f->models ? ew_arena_printf(a, "%s %s", f->models, board) : board;
        EW_CHECK(f->models, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    }
    return EW_OK;
}

/* States where the model's constants come from: agreement with values to which it was fitted proves
 * little.
 */
static ew_err name_source(struct ew_arena *a, struct ew_figure *f)
{
    const struct ew_profile *list, *p;
    int n;
    if (!f->models || !f->cite)
        return EW_OK;
    EW_TRY(ew_profiles_load(a, &list, &n));
    p = ew_profile_find(list, n, f->models);
    f->fitted = p ? p->model.source : NULL;
    return EW_OK;
}

static void count_all(struct ew_figure *f, const struct ew_obs *v, int n)
{
    struct ew_group all = {0};
    count_runs(v, n, &all);
    f->runs = all.runs;
    f->noisy = all.noisy;
}

static ew_err group_facet(struct ew_figures *out, const struct ew_figure_desc *d,
                          const struct ew_results *r, const struct ew_obs_list *l, struct ew_obs *v,
                          int n)
{
    struct ew_figure *f;
    const char *facet = v->facet;
    EW_TRY(ew_figures_add(out, d, facet, &f));
    fill_axes(f, l);
    f->also = d->any_machine ? NULL : v->also; /* x lists the options itself there */
    count_all(f, v, n);
    EW_TRY(name_models(&out->arena, f, v, n));
    if (d->across)
        n = join(v, n);
    f->groups =
        ew_arena_array(&out->arena, (size_t)n + (size_t)r->n_published + 1, sizeof(*f->groups));
    EW_CHECK(f->groups, EW_ERR_MEMORY, "no memory for figure %s", d->id);
    for (int i = 0; i < n;) {
        int end = i + 1;
        while (end < n && ew_obs_same(&v[i], &v[end]))
            end++;
        EW_TRY(fill_group(&out->arena, f, v + i, end - i, &f->groups[f->n_groups++]));
        i = end;
    }
    EW_TRY(ew_figure_publish(&out->arena, f, l, r));
    EW_TRY(name_source(&out->arena, f));
    if (d->ratios[0].top)
        EW_TRY(ew_figure_ratios(&out->arena, f));
    ew_figure_name_here(f);
    EW_TRY(ew_figure_series(out, f));
    if (!f->n_series && !f->missing) {
        f->missing = d->kind == EW_FIGURE_POINTS
                         ? ew_arena_printf(&out->arena, "no run has both %s and %s",
                                           f->measure[0].label, f->measure[1].label)
                         : "its runs have no such values";
        EW_CHECK(f->missing, EW_ERR_MEMORY, "no memory for figure %s", d->id);
    }
    return d->published_fit && f->n_series ? ew_figure_published_lines(&out->arena, f, r) : EW_OK;
}

/* Figures from `first` on are panels of one description: drops those without data; if all lack
 * data, keeps one to say why. */
static void drop_empty(struct ew_figures *out, int first)
{
    int drawn = 0, kept = first;
    for (int i = first; i < out->n; i++)
        drawn += !out->v[i].missing;
    for (int i = first; i < out->n; i++)
        if (!out->v[i].missing || (!drawn && kept == first))
            out->v[kept++] = out->v[i];
    out->n = kept;
}

ew_err ew_figure_group(struct ew_figures *out, const struct ew_figure_desc *d,
                       const struct ew_results *r, const char *study)
{
    struct ew_obs_list l;
    const int first = out->n;
    ew_err e = ew_obs_collect(d, r, study, &out->arena, &l);
    if (e == EW_OK && l.missing) {
        struct ew_figure *f;
        e = ew_figures_add(out, d, "", &f);
        if (e == EW_OK)
            f->missing = l.missing;
    }
    for (int from = 0; e == EW_OK && !l.missing && from < l.n;) {
        int end = from;
        while (end < l.n && strcmp(l.v[end].facet, l.v[from].facet) == 0)
            end++;
        e = group_facet(out, d, r, &l, l.v + from, end - from);
        from = end;
    }
    free(l.v);
    if (e == EW_OK)
        drop_empty(out, first);
    return e;
}
