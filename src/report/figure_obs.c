/* SPDX-License-Identifier: Apache-2.0 */
/* Observations: which epochs and metrics a figure takes, and under which keys. */
#include "report/figure_obs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/figure_key.h"
#include "report/figure_stat.h"

/* Rank of a quality, the least trusted highest: a group has the quality of its worst value. */
static int rank(int quality)
{
    static const int order[] = {[EW_QUALITY_MEASURED] = 1,
                                [EW_QUALITY_DERIVED] = 2,
                                [EW_QUALITY_EMULATED] = 3,
                                [EW_QUALITY_MODELLED] = 4,
                                [EW_QUALITY_SIMULATED] = 5};
    return quality >= 0 && quality < EW_QUALITY_N ? order[quality] : 0;
}

static int worse(int a, int b)
{
    return rank(a) >= rank(b) ? a : b;
}

/* ---- Measures ---- */

static double field_value(const struct ew_field *f, const void *row)
{
    const void *at = (const char *)row + f->offset;
    if (ew_field_absent(f, row))
        return NAN;
    return f->type == EW_FIELD_FLOAT ? *(const double *)at : (double)*(const int64_t *)at;
}

static const struct ew_metric_row *metric(const struct ew_run_data *d, const char *name)
{
    for (int i = 0; i < d->n_metrics; i++)
        if (d->metrics[i].name && strcmp(d->metrics[i].name, name) == 0)
            return &d->metrics[i];
    return NULL;
}

static bool run_has(const struct ew_run_data *d, enum ew_record from, struct ew_measure *m)
{
    if (from == EW_RECORD_METRIC) {
        const struct ew_metric_row *row = metric(d, m->name);
        if (!row || !isfinite(row->value))
            return false;
        m->unit = row->unit;
        m->better = row->better;
        return true;
    }
    for (int e = 0; m->field && e < d->n_epochs; e++)
        if (isfinite(field_value(m->field, &d->epochs[e])))
            return true;
    return false;
}

/* Runs in which the values of a figure are looked up. */
struct obs_query {
    const struct ew_figure_desc *d;
    const struct ew_results *r;
    const char *study;
    struct ew_arena *a;
};

static bool is_of(const struct ew_run_data *run, const char *of)
{
    const char *name = run->run.label ? run->run.label : run->job.command;
    return !of || (name && ew_words_have(of, name));
}

/* The first of the alternatives that some run has; false where none has any. */
static bool resolve(const struct obs_query *w, const char *alternatives, const char *of,
                    struct ew_measure *out)
{
    const struct ew_figure_desc *d = w->d;
    struct ew_arena *a = w->a;
    for (const char *p = alternatives; p && *p;) {
        const int len = (int)strcspn(p, "|");
        struct ew_measure m = {.name = ew_arena_printf(a, "%.*s", len, p)};
        if (!m.name)
            return false;
        if (d->from == EW_RECORD_EPOCH) {
            m.summed = m.name && strcmp(m.name, "elapsed_s") == 0;
            m.field = ew_field_find(ew_record_kind(EW_RECORD_EPOCH)->fields,
                                    m.summed ? "wall_s" : m.name);
            m.unit = m.field ? m.field->unit : NULL;
            m.better = m.field ? (int)m.field->better : EW_BETTER_NEITHER;
        }
        for (int i = 0; i < w->r->n_runs; i++) {
            const struct ew_run_data *run = &w->r->runs[i];
            if (ew_figure_takes(d, run, w->study) && is_of(run, of) && run_has(run, d->from, &m)) {
                *out = m;
                return true;
            }
        }
        p += len + (p[len] == '|');
    }
    return false;
}

static const char *wanted_name(const struct ew_figure_desc *d, int v, int k)
{
    return d->variants[0].name ? d->variants[v].y[k] : d->y[k].name;
}

static int variants(const struct ew_figure_desc *d)
{
    int n = 0;
    while (n < EW_FIGURE_MAX_VARIANTS && d->variants[n].name)
        n++;
    return n ? n : 1;
}

/* Resolves the measures of all variants and leaves out those without data; false if none is
 * left. */
static bool resolve_all(const struct obs_query *w, struct ew_obs_list *l)
{
    bool any = false;
    for (int v = 0; v < variants(w->d); v++) {
        bool all = true;
        for (int k = 0; k < EW_FIGURE_MAX_Y && w->d->y[k].name; k++) {
            const char *name = wanted_name(w->d, v, k);
            if (resolve(w, name, w->d->y[k].of, &l->measure[v][k]) || w->d->y[k].optional)
                continue;
            all = false;
            l->missing =
                ew_arena_printf(w->a, "no finished run has %.*s", (int)strcspn(name, "|"), name);
        }
        any |= all;
    }
    return any;
}

/* ---- Observations ---- */

/* Rows come in the order of epochs, whatever number they begin with. */
static const char *when(const struct ew_run_data *run, const struct ew_epoch_row *e)
{
    return e == run->epochs ? "first" : "later";
}

const char *ew_obs_property(const struct ew_run_data *run, const char *names, struct ew_arena *a)
{
    for (const char *p = names; *p;) {
        const int len = (int)strcspn(p, "|");
        const char *name = ew_arena_printf(a, "%.*s", len, p);
        const char *text = name ? ew_run_property(run, name, a) : NULL;
        if (text)
            return text;
        p += len + (p[len] == '|');
    }
    return NULL;
}

/* A property of the run, or of the epoch where there is one. */
static const char *property(const struct ew_run_data *run, const struct ew_epoch_row *e,
                            const char *name, struct ew_arena *a)
{
    if (e && strcmp(name, "when") == 0)
        return when(run, e);
    if (e && strcmp(name, "epoch") == 0)
        return ew_arena_printf(a, "%lld", (long long)e->epoch);
    if (e && strcmp(name, "epochs_done") == 0)
        return ew_arena_printf(a, "%lld", (long long)(e - run->epochs) + 1);
    return ew_obs_property(run, name, a);
}

/* The values of several properties; "" where all are absent. */
static const char *properties(const struct ew_run_data *run, const struct ew_epoch_row *e,
                              const char *names, struct ew_arena *a)
{
    const char *out = "";
    for (const char *p = names; out && p && *p;) {
        const int len = (int)strcspn(p, " ");
        const char *name = ew_arena_printf(a, "%.*s", len, p);
        const char *text = name ? property(run, e, name, a) : NULL;
        if (text)
            out = ew_arena_printf(a, "%s%s%s", out, *out ? ", " : "", text);
        p += len + (p[len] == ' ');
    }
    return out;
}

static ew_err push(struct ew_obs_list *l, const struct ew_obs *o)
{
    bool any = false;
    for (int k = 0; k < EW_FIGURE_MAX_Y; k++)
        any |= isfinite(o->y[k]);
    if (!any || !o->x)
        return EW_OK;
    EW_TRY(ew_grow((void **)&l->v, &l->cap, l->n + 1, sizeof(*l->v)));
    l->v[l->n++] = *o;
    return EW_OK;
}

static void clear_values(struct ew_obs *o)
{
    for (int k = 0; k < EW_FIGURE_MAX_Y; k++)
        o->y[k] = o->spread[k] = o->low[k] = o->high[k] = NAN;
}

static ew_err collect_variant(const struct ew_figure_desc *d, int v, struct ew_obs *o,
                              struct ew_obs_list *l)
{
    clear_values(o);
    o->quality = o->run->run.quality;
    for (int k = 0; k < EW_FIGURE_MAX_Y && d->y[k].name; k++) {
        const char *name = l->measure[v][k].name;
        const struct ew_metric_row *m =
            name && is_of(o->run, d->y[k].of) ? metric(o->run, name) : NULL;
        if (!m)
            continue;
        o->y[k] = m->value;
        if (m->n > 1) { /* one measurement has no spread, whatever the row says */
            o->spread[k] = m->spread;
            o->low[k] = m->lowest;
            o->high[k] = m->highest;
        }
        o->quality = worse(o->quality, m->quality);
    }
    return push(l, o);
}

static ew_err collect_metrics(const struct ew_figure_desc *d, struct ew_obs *o, struct ew_arena *a,
                              struct ew_obs_list *l)
{
    o->x = d->x ? properties(o->run, NULL, d->x, a) : "";
    const char *series = properties(o->run, NULL, d->series, a);
    if (d->x && !*o->x)
        return EW_OK;
    for (int v = 0; v < variants(d); v++) {
        const char *name = d->variants[v].name;
        o->series = name ? ew_arena_printf(a, "%s%s%s", series, *series ? ", " : "", name) : series;
        EW_CHECK(o->series, EW_ERR_MEMORY, "no memory for figure %s", d->id);
        EW_TRY(collect_variant(d, v, o, l));
    }
    return EW_OK;
}

#define SHORT_RUN 12 /* epochs: few enough to draw each of them */

static bool is_in_sweep(int done, int all)
{
    static const int sweep[] = {10, 30, 50, 60, 100, 150, 200};
    for (size_t i = 0; i < EW_COUNT(sweep); i++)
        if (done == sweep[i])
            return true;
    return all <= SHORT_RUN || done == all;
}

static bool epoch_counts(const struct ew_figure_desc *d, const struct ew_run_data *run, int e)
{
    switch (d->epochs) {
    case EW_EPOCHS_LATER:
        return run->n_epochs == 1 || e > 0;
    case EW_EPOCHS_LAST:
        return e == run->n_epochs - 1;
    case EW_EPOCHS_SWEEP:
        return is_in_sweep(e + 1, run->n_epochs);
    case EW_EPOCHS_ALL:
        break;
    }
    return true;
}

static double epoch_value(const struct ew_measure *m, const struct ew_run_data *run, int e)
{
    double sum = 0;
    if (!m->summed)
        return field_value(m->field, &run->epochs[e]);
    for (int i = 0; i <= e; i++)
        sum += field_value(m->field, &run->epochs[i]);
    return sum;
}

static ew_err collect_epochs(const struct ew_figure_desc *d, struct ew_obs *o, struct ew_arena *a,
                             struct ew_obs_list *l)
{
    for (int e = 0; e < o->run->n_epochs; e++) {
        const struct ew_epoch_row *row = &o->run->epochs[e];
        if (!epoch_counts(d, o->run, e))
            continue;
        clear_values(o);
        o->quality = worse(o->run->run.quality, row->quality);
        o->x = d->x ? properties(o->run, row, d->x, a) : "";
        o->series = properties(o->run, row, d->series, a);
        for (int k = 0; k < EW_FIGURE_MAX_Y && d->y[k].name; k++)
            if (l->measure[0][k].field && is_of(o->run, d->y[k].of))
                o->y[k] = epoch_value(&l->measure[0][k], o->run, e);
        if (!d->x || *o->x)
            EW_TRY(push(l, o));
    }
    return EW_OK;
}

static ew_err collect_run(const struct ew_figure_desc *d, const struct ew_run_data *run,
                          struct ew_arena *a, struct ew_obs_list *l)
{
    char *used = ew_arena_printf(a, "%s %s %s", d->facet ? d->facet : "", d->x ? d->x : "",
                                 d->series ? d->series : "");
    struct ew_obs o = {.run = run};
    EW_CHECK(used, EW_ERR_MEMORY, "no memory for figure %s", d->id);
    for (char *p = used; *p; p++)
        *p = *p == '|' ? ' ' : *p;
    clear_values(&o);
    o.facet = d->facet ? ew_obs_property(run, d->facet, a) : "";
    o.options = d->across ? "\n" : ew_key_options(run, used, a);
    o.machine = d->any_machine ? "\n" : ew_key_machine(run, used, a);
    EW_CHECK(o.options && o.machine && !a->failed, EW_ERR_MEMORY, "no memory for figure %s", d->id);
    o.options_label = o.machine_label = "";
    if (!o.facet)
        o.facet = "";
    return d->from == EW_RECORD_EPOCH ? collect_epochs(d, &o, a, l) : collect_metrics(d, &o, a, l);
}

/* ---- Keys ---- */

/* Order of facets, series, machines, options, x, qualities. */
static int by_group(const struct ew_obs *a, const struct ew_obs *b)
{
    int c = ew_text_order(a->facet, b->facet);
    c = c ? c : ew_text_order(a->series, b->series);
    c = c ? c : ew_text_order(a->machine, b->machine);
    c = c ? c : ew_text_order(a->options, b->options);
    c = c ? c : ew_text_order(a->x, b->x);
    return c ? c : a->quality - b->quality;
}

bool ew_obs_same(const struct ew_obs *a, const struct ew_obs *b)
{
    return by_group(a, b) == 0;
}

static int by_setting(const void *a, const void *b)
{
    const struct ew_obs *p = a, *q = b;
    int c = ew_text_order(p->facet, q->facet);
    c = c ? c : ew_text_order(p->x, q->x);
    return c ? c : ew_text_order(p->series, q->series);
}

static int by_order(const void *a, const void *b)
{
    return by_group(a, b);
}

/* An option that is a function of x and series (a storage medium and its folder) does not
 * distinguish runs; the figure's note names it. v[n]: of one facet. */
static ew_err settle_options(struct ew_obs *v, int n, struct ew_arena *a)
{
    const char *apart = "\n", *also = "\n";
    for (int i = 1; i < n; i++) {
        if (by_setting(&v[i - 1], &v[i]) == 0)
            apart = ew_key_differ(v[i - 1].options, v[i].options, apart, a);
        else
            also = ew_key_differ(v[i - 1].options, v[i].options, also, a);
        EW_CHECK(apart && also, EW_ERR_MEMORY, "no memory for figures");
    }
    also = ew_names_without(also, apart, a);
    EW_CHECK(also, EW_ERR_MEMORY, "no memory for figures");
    for (int i = 0; i < n; i++) {
        v[i].also = also;
        v[i].options = i > 0 && v[i].run == v[i - 1].run ? v[i - 1].options
                                                         : ew_key_only(v[i].options, apart, a);
        EW_CHECK(v[i].options, EW_ERR_MEMORY, "no memory for figures");
    }
    return EW_OK;
}

/* v[n], sorted by by_group, of one facet: keeps the slices (all but x and quality the same)
 * that have at least `least` values of x; returns how many observations stay. */
static int keep_sweeps(struct ew_obs *v, int n, int least)
{
    int kept = 0;
    for (int i = 0; i < n;) {
        int end = i, values = 0;
        for (; end < n; end++) {
            struct ew_obs at = v[i];
            at.x = v[end].x;
            at.quality = v[end].quality;
            if (!ew_obs_same(&at, &v[end]))
                break;
            values += end == i || strcmp(v[end].x, v[end - 1].x) != 0;
        }
        if (values >= least) {
            memmove(v + kept, v + i, (size_t)(end - i) * sizeof(*v));
            kept += end - i;
        }
        i = end;
    }
    return kept;
}

/* For point figures, whose series share one chart: keeps v[n], of one facet, if together they have
 * at least `least` values of x. */
static int keep_dots(struct ew_obs *v, int n, int least)
{
    int values = 0;
    for (int i = 0; i < n && values < least; i++) {
        bool seen = false;
        for (int k = 0; k < i && !seen; k++)
            seen = strcmp(v[k].x, v[i].x) == 0;
        values += !seen;
    }
    return values >= least ? n : 0;
}

static ew_err label(struct ew_obs *v, int n, struct ew_arena *a)
{
    struct ew_key_set options = {.names = "\n"}, machines = {.names = "\n"};
    for (int i = 0; i < n; i++) {
        EW_TRY(ew_key_set_add(&options, v[i].options, a));
        EW_TRY(ew_key_set_add(&machines, v[i].machine, a));
    }
    EW_TRY(ew_key_set_trim(&options, a));
    EW_TRY(ew_key_set_trim(&machines, a));
    for (int i = 0; i < n; i++) {
        const bool same = i > 0 && v[i].run == v[i - 1].run;
        v[i].options_label =
            same ? v[i - 1].options_label : ew_key_label(v[i].options, options.names, false, a);
        v[i].machine_label =
            same ? v[i - 1].machine_label : ew_key_label(v[i].machine, machines.names, true, a);
        EW_CHECK(v[i].options_label && v[i].machine_label, EW_ERR_MEMORY, "no memory for figures");
    }
    return EW_OK;
}

static int facet_end(const struct ew_obs_list *l, int from)
{
    int end = from;
    while (end < l->n && strcmp(l->v[end].facet, l->v[from].facet) == 0)
        end++;
    return end;
}

static ew_err settle(const struct ew_figure_desc *d, struct ew_arena *a, struct ew_obs_list *l)
{
    int kept = 0;
    if (l->n)
        qsort(l->v, (size_t)l->n, sizeof(*l->v), by_setting);
    for (int from = 0; from < l->n;) {
        const int end = facet_end(l, from);
        struct ew_obs *v = l->v + from;
        EW_TRY(settle_options(v, end - from, a));
        qsort(v, (size_t)(end - from), sizeof(*v), by_order);
        const int n = d->kind == EW_FIGURE_POINTS ? keep_dots(v, end - from, d->min_x)
                                                  : keep_sweeps(v, end - from, d->min_x);
        EW_TRY(label(v, n, a));
        memmove(l->v + kept, v, (size_t)n * sizeof(*v));
        kept += n;
        from = end;
    }
    l->n = kept;
    return EW_OK;
}

ew_err ew_obs_collect(const struct ew_figure_desc *d, const struct ew_results *r, const char *study,
                      struct ew_arena *a, struct ew_obs_list *out)
{
    *out = (struct ew_obs_list){.n = 0};
    bool any = false;
    for (int i = 0; i < r->n_runs; i++)
        any |= ew_figure_takes(d, &r->runs[i], study);
    if (!any) {
        out->missing = d->studies ? ew_arena_printf(a, "no finished run of study %s", d->studies)
                                  : "no finished run";
        return EW_OK;
    }
    if (!resolve_all(&(struct obs_query){d, r, study, a}, out))
        return a->failed ? ew_fail(EW_ERR_MEMORY, "no memory for figure %s", d->id) : EW_OK;
    out->missing = NULL;
    for (int i = 0; i < r->n_runs; i++)
        if (ew_figure_takes(d, &r->runs[i], study))
            EW_TRY(collect_run(d, &r->runs[i], a, out));
    const int before = out->n;
    EW_TRY(settle(d, a, out));
    if (!before)
        out->missing =
            ew_arena_printf(a, "no finished run has a value of %.*s",
                            (int)strcspn(d->x ? d->x : "values", "|"), d->x ? d->x : "values");
    else if (!out->n)
        out->missing =
            ew_arena_printf(a, "%.*s has fewer than %d values in runs with otherwise equal options",
                            (int)strcspn(d->x, "|"), d->x, d->min_x);
    return EW_OK;
}
