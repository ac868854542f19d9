/* SPDX-License-Identifier: Apache-2.0 */
/* Published values beside ours, and ratios of two series. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/figure_key.h"
#include "report/figure_obs.h"
#include "report/figure_stat.h"

/* ---- Settings of a published value ---- */

/* The next "name=value" of the settings; false at the end. */
static bool next_setting(const char **at, struct ew_arena *a, const char **name, const char **value)
{
    *at += strspn(*at, " ");
    const size_t len = strcspn(*at, " ");
    const char *eq = memchr(*at, '=', len);
    if (!len)
        return false;
    *name = ew_arena_printf(a, "%.*s", eq ? (int)(eq - *at) : (int)len, *at);
    *value = eq ? ew_arena_printf(a, "%.*s", (int)(len - (size_t)(eq + 1 - *at)), eq + 1) : "";
    *at += len;
    return *name && *value;
}

/* Maps a metric of a run's summary to the field of the epochs: epoch_s is wall_s, and NAME_first is
 * NAME of the first epoch. */
static const char *measure_of(const struct ew_published_row *p, struct ew_arena *a, bool *first)
{
    static const char suffix[] = "_first";
    const size_t n = strlen(p->metric), m = sizeof(suffix) - 1;
    *first = n > m && strcmp(p->metric + n - m, suffix) == 0;
    char *name = ew_arena_printf(a, "%.*s", (int)(n - (*first ? m : 0)), p->metric);
    return name && strcmp(name, "epoch_s") == 0 ? "wall_s" : name;
}

/* The value's setting of a property; NULL: not stated. */
static const char *setting(const struct ew_published_row *p, const char *names, bool first,
                           struct ew_arena *a)
{
    const char *at = p->settings ? p->settings : "", *name, *value;
    if (strcmp(names, "study") == 0)
        return p->study;
    if (strcmp(names, "when") == 0)
        return first ? "first" : "later";
    while (next_setting(&at, a, &name, &value))
        for (const char *n = names; *n; n += strcspn(n, "|") + (n[strcspn(n, "|")] == '|'))
            if (strlen(name) == strcspn(n, "|") && strncmp(n, name, strlen(name)) == 0)
                return value;
    return NULL;
}

static const char *settings(const struct ew_published_row *p, const char *names, bool first,
                            struct ew_arena *a)
{
    const char *out = "";
    for (const char *w = names; out && w && *w;) {
        const int len = (int)strcspn(w, " ");
        const char *name = ew_arena_printf(a, "%.*s", len, w);
        const char *text = name ? setting(p, name, first, a) : NULL;
        if (text)
            out = ew_arena_printf(a, "%s%s%s", out, *out ? ", " : "", text);
        w += len + (w[len] == ' ');
    }
    return out;
}

/* The settings that are not properties of the figure: "workers 0". */
static const char *other_settings(const struct ew_published_row *p, const char *used,
                                  struct ew_arena *a)
{
    const char *at = p->settings ? p->settings : "", *name, *value, *out = "";
    while (out && next_setting(&at, a, &name, &value))
        if (!ew_words_have(used, name) && strcmp(name, "label") != 0)
            out = ew_arena_printf(a, "%s%s%s %s", out, *out ? ", " : "", name, value);
    return out;
}

/* ---- Groups of published values ---- */

static bool have_x(const struct ew_figure *f, int own, const char *x)
{
    for (int i = 0; i < own; i++)
        if (strcmp(f->groups[i].x, x) == 0)
            return true;
    return false;
}

static struct ew_group *find_group(struct ew_figure *f, int own, const struct ew_group *like)
{
    for (int i = own; i < f->n_groups; i++) {
        struct ew_group *g = &f->groups[i];
        if (strcmp(g->x, like->x) == 0 && strcmp(g->series, like->series) == 0 &&
            strcmp(g->options, like->options) == 0 && strcmp(g->published, like->published) == 0)
            return g;
    }
    struct ew_group *g = &f->groups[f->n_groups++];
    *g = *like;
    for (int k = 0; k < EW_FIGURE_MAX_Y; k++)
        ew_stat_of(NULL, 0, &g->y[k]);
    return g;
}

static ew_err publish_one(struct ew_arena *a, struct ew_figure *f, int own, int k,
                          const struct ew_published_row *p, bool reduced)
{
    const struct ew_figure_desc *d = f->desc;
    bool first;
    measure_of(p, a, &first);
    char *used = ew_arena_printf(a, "%s %s %s", d->facet ? d->facet : "", d->x ? d->x : "",
                                 d->series ? d->series : "");
    const char *facet = d->facet ? setting(p, d->facet, first, a) : NULL;
    for (char *c = used; c && *c; c++)
        *c = *c == '|' ? ' ' : *c;
    const struct ew_group like = {.x = d->x ? settings(p, d->x, first, a) : "",
                                  .series = settings(p, d->series, first, a),
                                  .machine = p->board ? p->board : "",
                                  .options = used ? other_settings(p, used, a) : NULL,
                                  .quality = -1,
                                  .published = p->board ? p->board : "elsewhere"};
    EW_CHECK(used && like.x && like.series && like.options && !a->failed, EW_ERR_MEMORY,
             "no memory for published values");
    const bool fits = d->epochs == EW_EPOCHS_ALL || !first || d->from != EW_RECORD_EPOCH;
    if (!fits || (d->facet && (!facet || strcmp(facet, f->facet) != 0)) || !have_x(f, own, like.x))
        return EW_OK;
    f->no_published |= reduced;
    if (reduced)
        return EW_OK;
    struct ew_group *g = find_group(f, own, &like);
    double *v = ew_arena_alloc(a, sizeof(*v));
    EW_CHECK(v, EW_ERR_MEMORY, "no memory for published values");
    *v = p->value * f->measure[k].scale;
    ew_stat_of(v, 1, &g->y[k]);
    f->cite = p->cite;
    if (p->wrong) {
        f->wrong =
            ew_arena_printf(a, "%s%s%s (%s): %s", f->wrong ? f->wrong : "", f->wrong ? "; " : "",
                            like.x, p->place ? p->place : "", p->wrong);
        EW_CHECK(f->wrong, EW_ERR_MEMORY, "no memory for published values");
    }
    return EW_OK;
}

/* Whether the runs are a reduced size whose seconds and joules cannot be compared with the full
 * study's; shares, ratios and the time of one inference can. */
static bool is_reduced(const struct ew_results *r, const char *study, const char *unit)
{
    if (strcmp(unit, "s") != 0 && strcmp(unit, "J") != 0)
        return false;
    for (int i = 0; i < r->n_studies; i++)
        if (r->studies[i].name && strcmp(r->studies[i].name, study) == 0)
            return r->studies[i].quick;
    return false;
}

static int by_setting(const void *a, const void *b)
{
    const struct ew_group *p = a, *q = b;
    int c = strcmp(p->published, q->published);
    c = c ? c : ew_text_order(p->series, q->series);
    c = c ? c : ew_text_order(p->options, q->options);
    return c ? c : ew_text_order(p->x, q->x);
}

ew_err ew_figure_publish(struct ew_arena *a, struct ew_figure *f, const struct ew_obs_list *l,
                         const struct ew_results *r)
{
    const int own = f->n_groups;
    bool first;
    /* No publication states all parts of a stacked bar. */
    if (f->desc->kind == EW_FIGURE_STACK || !f->desc->studies)
        return EW_OK;
    for (int i = 0; i < r->n_published; i++) {
        const struct ew_published_row *p = &r->published[i];
        if (!p->metric || !p->study || !ew_words_have(f->desc->studies, p->study))
            continue;
        const char *name = measure_of(p, a, &first);
        EW_CHECK(name, EW_ERR_MEMORY, "no memory for published values");
        for (int k = 0; k < f->n_measures; k++) {
            const char *ours = l->measure[0][k].name;
            const char *theirs = f->desc->from == EW_RECORD_EPOCH ? name : p->metric;
            const char *label = setting(p, "label", first, a), *of = f->desc->y[k].of;
            if (!ours || strcmp(ours, theirs) != 0 || (label && of && !ew_words_have(of, label)))
                continue;
            EW_TRY(publish_one(a, f, own, k, p, is_reduced(r, p->study, f->measure[k].unit)));
        }
    }
    qsort(f->groups + own, (size_t)(f->n_groups - own), sizeof(*f->groups), by_setting);
    return EW_OK;
}

bool ew_group_is_drawn(const struct ew_figure *f, const struct ew_group *g)
{
    return f->desc->kind != EW_FIGURE_POINTS || (isfinite(g->y[0].mean) && isfinite(g->y[1].mean));
}

void ew_figure_name_here(struct ew_figure *f)
{
    bool beside = false;
    for (int i = 0; i < f->n_groups; i++)
        beside |= f->groups[i].published && ew_group_is_drawn(f, &f->groups[i]);
    for (int i = 0; beside && i < f->n_groups; i++)
        if (!*f->groups[i].machine)
            f->groups[i].machine = "here";
}

/* ---- Ratios ---- */

static const struct ew_group *partner(const struct ew_figure *f, const struct ew_group *g,
                                      const char *series)
{
    for (int i = 0; i < f->n_groups; i++) {
        const struct ew_group *o = &f->groups[i];
        if (strcmp(o->series, series) == 0 && strcmp(o->x, g->x) == 0 &&
            strcmp(o->machine, g->machine) == 0 && strcmp(o->options, g->options) == 0 &&
            o->quality == g->quality)
            return o;
    }
    return NULL;
}

/* Ratio of measure k, with relative standard deviations added in quadrature; the other measures are
 * those of `bottom`. */
static ew_err divide(struct ew_arena *a, const struct ew_group *top, const struct ew_group *bottom,
                     int k, struct ew_group *out)
{
    const struct ew_stat *x = &top->y[k], *y = &bottom->y[k];
    double *v = ew_arena_alloc(a, sizeof(*v));
    EW_CHECK(v, EW_ERR_MEMORY, "no memory for a ratio");
    *v = x->mean / y->mean;
    *out = *bottom;
    out->runs += top->runs;
    out->noisy += top->noisy;
    if (!out->published)
        out->quality = out->quality == EW_QUALITY_MEASURED ? EW_QUALITY_DERIVED : out->quality;
    ew_stat_of(v, 1, &out->y[k]);
    if (isfinite(x->sd) && isfinite(y->sd))
        out->y[k].sd = *v * hypot(x->sd / x->mean, y->sd / y->mean);
    return EW_OK;
}

static ew_err add_ratios(struct ew_arena *a, const struct ew_figure *f,
                         const struct ew_figure_ratio *r, struct ew_group *made, int *n)
{
    const int k = f->n_measures - 1;
    for (int i = 0; i < f->n_groups; i++) {
        const struct ew_group *g = &f->groups[i];
        const struct ew_group *other =
            strcmp(g->series, r->top) == 0 ? partner(f, g, r->bottom) : NULL;
        if (!other || !(other->y[k].mean > 0) || !isfinite(g->y[k].mean))
            continue;
        EW_TRY(divide(a, g, other, k, &made[*n]));
        made[(*n)++].series = r->name;
    }
    return EW_OK;
}

ew_err ew_figure_ratios(struct ew_arena *a, struct ew_figure *f)
{
    const struct ew_figure_ratio *r = f->desc->ratios;
    const int k = f->n_measures - 1;
    struct ew_group *made =
        ew_arena_array(a, (size_t)f->n_groups * EW_FIGURE_MAX_RATIOS + 1, sizeof(*made));
    int n = 0;
    EW_CHECK(made, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    for (int i = 0; i < EW_FIGURE_MAX_RATIOS && r[i].top; i++)
        EW_TRY(add_ratios(a, f, &r[i], made, &n));
    f->groups = made;
    f->n_groups = n;
    ew_axis_fill(&f->measure[k], f->measure[k].label, NULL, EW_BETTER_HIGHER);
    f->y[0] = f->measure[k];
    if (!n) {
        f->missing = ew_arena_printf(a, "no configuration has both %s and %s", r->top, r->bottom);
        EW_CHECK(f->missing, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    }
    return EW_OK;
}
