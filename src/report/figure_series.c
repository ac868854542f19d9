/* SPDX-License-Identifier: Apache-2.0 */
/* From groups to what is drawn: categories, series, the Pareto front. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/order_stats.h"
#include "report/figure_stat.h"

#define MOST_SERIES 12 /* more could not be distinguished in a chart; the table has all */

static const char *joined(struct ew_arena *a, const char *before, const char *text, char by)
{
    if (!before || !*text)
        return before;
    if (!*before)
        return text;
    return ew_arena_printf(a, by == ',' ? "%s, %s" : "%s\n%s", before, text);
}

/* Remark about a value that was not measured here; "": none. */
static const char *remark(const struct ew_group *g)
{
    return g->published                                          ? "published"
           : g->quality == EW_QUALITY_MEASURED || g->quality < 0 ? ""
                                                                 : ew_figure_quality(g->quality);
}

/* Whether series differ in quality; otherwise the caption states it once. */
static bool has_mixed_quality(const struct ew_figure *f)
{
    const struct ew_group *first = NULL;
    if (f->desc->published_fit) /* a published line is drawn as well */
        return true;
    for (int i = 0; i < f->n_groups; i++) {
        const struct ew_group *g = &f->groups[i];
        if (!ew_group_is_drawn(f, g))
            continue;
        if (first && first->quality != g->quality)
            return true;
        first = g;
    }
    return false;
}

/* "1, resnet18" of "threads network" as "threads 1, resnet18"; values as they are where they and
 * the names do not pair up. */
static const char *named(struct ew_arena *a, const char *names, const char *values)
{
    const char *out = "", *name = names, *v = values;
    while (out && *name && *v) {
        const int of_name = (int)strcspn(name, " ");
        const char *end = strstr(v, ", ");
        const int of_value = (int)(end ? end - v : (long)strlen(v));
        char one[64];
        double number;
        snprintf(one, sizeof(one), "%.*s", of_value, v);
        const bool add = ew_num_float(one, &number);
        out = ew_arena_printf(a, "%s%s%.*s%s%.*s", out, *out ? ", " : "", add ? of_name : 0, name,
                              add ? " " : "", of_value, v);
        name += of_name + (name[of_name] == ' ');
        v += of_value + (end ? 2 : 0);
    }
    return out && (*name || *v) ? values : out;
}

/* The properties that distinguish a group from others of the same x; `otherwise` if there are
 * none. */
static const char *group_name(struct ew_arena *a, const struct ew_figure *f,
                              const struct ew_group *g, const char *otherwise)
{
    const char *unit = *g->series ? f->desc->series_unit : NULL;
    const char *series = unit ? ew_arena_printf(a, "%s %s", g->series, unit) : g->series;
    if (f->desc->series_named && series && *series)
        series = named(a, f->desc->series, series);
    const char *name = joined(a, series, g->options, ',');
    name = joined(a, name, g->machine, ',');
    const char *quality = has_mixed_quality(f) ? remark(g) : "";
    if (name && !*name)
        name = otherwise;
    return name && *quality ? ew_arena_printf(a, "%s (%s)", name, quality) : name;
}

/* ---- Categories ---- */

static int by_text(const void *a, const void *b)
{
    return ew_text_order(*(const char *const *)a, *(const char *const *)b);
}

static int by_bar(const void *a, const void *b)
{
    const struct ew_group *p = *(const struct ew_group *const *)a;
    const struct ew_group *q = *(const struct ew_group *const *)b;
    int c = ew_text_order(p->x, q->x);
    c = c ? c : ew_text_order(p->series, q->series);
    return c ? c : (p > q) - (p < q); /* our own values before published ones */
}

/* Label of a stacked bar, over several lines: x and the other distinguishing properties. */
static const char *bar_label(struct ew_arena *a, const struct ew_group *g, bool mixed)
{
    const char *text = joined(a, g->x, g->series, '\n');
    text = joined(a, text, g->options, '\n');
    text = joined(a, text, g->machine, '\n');
    return mixed ? joined(a, text, remark(g), '\n') : text;
}

static ew_err stack_categories(struct ew_arena *a, struct ew_figure *f, int *place)
{
    const struct ew_group **order = ew_arena_array(a, (size_t)f->n_groups, sizeof(*order));
    EW_CHECK(order, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    const bool mixed = has_mixed_quality(f);
    for (int i = 0; i < f->n_groups; i++)
        order[i] = &f->groups[i];
    qsort(order, (size_t)f->n_groups, sizeof(*order), by_bar);
    for (int i = 0; i < f->n_groups; i++) {
        place[order[i] - f->groups] = i;
        f->categories[i] = bar_label(a, order[i], mixed);
        EW_CHECK(f->categories[i], EW_ERR_MEMORY, "no memory for figure %s", f->id);
    }
    f->n_categories = f->n_groups;
    return EW_OK;
}

static ew_err x_categories(struct ew_figure *f, int *place)
{
    for (int i = 0; i < f->n_groups; i++)
        ew_text_intern(f->categories, &f->n_categories, f->groups[i].x);
    qsort(f->categories, (size_t)f->n_categories, sizeof(*f->categories), by_text);
    for (int i = 0; i < f->n_groups; i++)
        place[i] = ew_text_intern(f->categories, &f->n_categories, f->groups[i].x);
    return EW_OK;
}

/* ---- Series ---- */

static struct ew_series *find_series(struct ew_figure *f, const struct ew_series *like)
{
    for (int i = 0; i < f->n_series; i++) {
        struct ew_series *s = &f->series[i];
        if (s->measure == like->measure && s->quality == like->quality &&
            s->published == like->published && strcmp(s->name, like->name) == 0)
            return s;
    }
    struct ew_series *s = &f->series[f->n_series++];
    *s = *like;
    return s;
}

static enum ew_series_shape shape_of(enum ew_figure_kind k)
{
    static const enum ew_series_shape shapes[] = {
        [EW_FIGURE_STACK] = EW_SHAPE_BAR,   [EW_FIGURE_BARS] = EW_SHAPE_BAR,
        [EW_FIGURE_LINES] = EW_SHAPE_LINE,  [EW_FIGURE_BOXES] = EW_SHAPE_BOX,
        [EW_FIGURE_POINTS] = EW_SHAPE_DOT,  [EW_FIGURE_TRACE] = EW_SHAPE_LINE,
        [EW_FIGURE_MATRIX] = EW_SHAPE_CELL,
    };
    return shapes[k];
}

/* Measures of one figure are told apart by name where there are several. */
static const char *series_name(struct ew_arena *a, const struct ew_figure *f,
                               const struct ew_group *g, int k)
{
    const char *label = f->measure[f->desc->kind == EW_FIGURE_POINTS ? 1 : k].label;
    if (f->desc->kind == EW_FIGURE_STACK) /* the other properties are in the label of the bar */
        return label;
    if (f->desc->kind == EW_FIGURE_POINTS || f->n_measures == 1)
        return group_name(a, f, g, label);
    if (!*g->series && !*g->options && !*g->machine)
        return group_name(a, f, g, label);
    const char *group = group_name(a, f, g, "");
    return group && *group ? ew_arena_printf(a, "%s, %s", label, group) : label;
}

static ew_err add_point(struct ew_arena *a, struct ew_figure *f, int i, int k, double x)
{
    const struct ew_group *g = &f->groups[i];
    const struct ew_stat *y = &g->y[f->desc->kind == EW_FIGURE_POINTS ? 1 : k];
    const bool stack = f->desc->kind == EW_FIGURE_STACK;
    if (!isfinite(y->mean) || !isfinite(x))
        return EW_OK;
    const struct ew_series like = {.name = series_name(a, f, g, k),
                                   .shape = shape_of(f->desc->kind),
                                   .measure = k,
                                   .stacked = stack,
                                   .right = f->desc->y[k].right,
                                   .quality = g->quality,
                                   .published = g->published != NULL};
    EW_CHECK(like.name, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    struct ew_series *s = find_series(f, &like);
    if (!s->points)
        s->points = ew_arena_array(a, (size_t)f->n_groups, sizeof(*s->points));
    EW_CHECK(s->points, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    /* Whiskers of non-negative values end at 0. */
    const double low = y->mean - y->sd;
    s->points[s->n_points++] = (struct ew_point){.x = x,
                                                 .y = y->mean,
                                                 .low = low < 0 && y->mean >= 0 ? 0 : low,
                                                 .high = y->mean + y->sd,
                                                 .group = g};
    if (f->desc->kind == EW_FIGURE_POINTS)
        s->points[s->n_points - 1].label = g->x;
    return EW_OK;
}

/* Series of one colour: those of the same name with another quality, and published values of the
 * same quantity. */
static bool same_colour(const struct ew_series *a, const struct ew_series *b)
{
    const struct ew_group *g = a->points[0].group, *h = b->points[0].group;
    return strcmp(a->name, b->name) == 0 ||
           (a->published != b->published && a->measure == b->measure && *g->series &&
            strcmp(g->series, h->series) == 0);
}

static void colour(struct ew_figure *f)
{
    int used = 0;
    for (int i = 0; i < f->n_series; i++) {
        struct ew_series *s = &f->series[i];
        s->colour = -1;
        for (int j = 0; j < i && s->colour < 0; j++)
            if (same_colour(&f->series[j], s))
                s->colour = f->series[j].colour;
        if (s->colour < 0)
            s->colour = used++;
    }
}

static int by_x(const void *a, const void *b)
{
    const struct ew_point *p = a, *q = b;
    if (p->x < q->x || p->x > q->x)
        return p->x < q->x ? -1 : 1;
    return (p->y > q->y) - (p->y < q->y);
}

/* ---- The Pareto front ---- */

static bool comparable(const struct ew_point *p, const struct ew_point *q)
{
    return p->group->quality == q->group->quality &&
           strcmp(p->group->machine, q->group->machine) == 0;
}

/* The points that are comparable with `first`, over all series. */
static int comparable_points(const struct ew_figure *f, int own, const struct ew_point *first,
                             struct ew_point *out)
{
    int n = 0;
    for (int i = 0; i < own; i++)
        for (int j = 0; j < f->series[i].n_points; j++)
            if (comparable(first, &f->series[i].points[j]))
                out[n++] = f->series[i].points[j];
    return n;
}

/* Keeps the points of the Pareto front, without whiskers and in order of x. */
static ew_err keep_front(struct ew_arena *a, const struct ew_figure *f, struct ew_series *front)
{
    const double sx = f->x.better == EW_BETTER_HIGHER ? -1 : 1;
    const double sy = f->y[0].better == EW_BETTER_HIGHER ? -1 : 1;
    const int n = front->n_points;
    double *x = ew_arena_array(a, (size_t)n, sizeof(*x));
    double *y = ew_arena_array(a, (size_t)n, sizeof(*y));
    bool *on = ew_arena_array(a, (size_t)n, sizeof(*on));
    EW_CHECK(x && y && on, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    for (int i = 0; i < n; i++) {
        x[i] = sx * front->points[i].x;
        y[i] = sy * front->points[i].y;
    }
    EW_TRY(ew_pareto(x, y, n, on));
    bool several = false; /* several series: labels of points include the series */
    for (int i = 1; i < n; i++)
        several |= strcmp(front->points[i].group->series, front->points[0].group->series) != 0;
    front->n_points = 0;
    for (int i = 0; i < n; i++) {
        const struct ew_point p = front->points[i];
        const char *name = p.label && several ? joined(a, p.label, p.group->series, ',') : p.label;
        if (on[i])
            front->points[front->n_points++] =
                (struct ew_point){.x = p.x, .y = p.y, .low = NAN, .high = NAN, .label = name};
    }
    qsort(front->points, (size_t)front->n_points, sizeof(*front->points), by_x);
    return EW_OK;
}

static bool seen_before(const struct ew_figure *f, int i)
{
    for (int j = 0; j < i; j++)
        if (comparable(&f->series[j].points[0], &f->series[i].points[0]))
            return true;
    return false;
}

static ew_err add_fronts(struct ew_arena *a, struct ew_figure *f)
{
    const int own = f->n_series;
    for (int i = 0; i < own; i++) {
        const struct ew_point *first = &f->series[i].points[0];
        if (first->group->published || seen_before(f, i))
            continue;
        struct ew_series front = {
            .name = "Pareto front",
            .shape = EW_SHAPE_LINE,
            .front = true,
            .quality = first->group->quality,
            .points = ew_arena_array(a, (size_t)f->n_groups, sizeof(*front.points))};
        if (*first->group->machine)
            front.name = ew_arena_printf(a, "Pareto front, %s", first->group->machine);
        EW_CHECK(front.points && front.name, EW_ERR_MEMORY, "no memory for figure %s", f->id);
        front.n_points = comparable_points(f, own, first, front.points);
        EW_TRY(keep_front(a, f, &front));
        if (front.n_points > 1)
            f->series[f->n_series++] = front;
    }
    return EW_OK;
}

/* ---- All ---- */

ew_err ew_figure_series(struct ew_figures *out, struct ew_figure *f)
{
    struct ew_arena *a = &out->arena;
    const int measures = f->desc->kind == EW_FIGURE_POINTS ? 1 : f->n_measures;
    const size_t n = (size_t)f->n_groups;
    int *place = ew_arena_array(a, n, sizeof(*place));
    f->categories = ew_arena_array(a, n + 1, sizeof(*f->categories));
    f->series = ew_arena_array(a, 3 * n * (size_t)measures + 3, sizeof(*f->series));
    EW_CHECK(place && f->categories && f->series, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    if (f->desc->kind == EW_FIGURE_STACK)
        EW_TRY(stack_categories(a, f, place));
    else if (f->desc->kind != EW_FIGURE_POINTS)
        EW_TRY(x_categories(f, place));
    for (int k = 0; k < measures; k++)
        for (int i = 0; i < f->n_groups; i++)
            EW_TRY(add_point(
                a, f, i, k, f->desc->kind == EW_FIGURE_POINTS ? f->groups[i].y[0].mean : place[i]));
    for (int i = 0; i < f->n_series; i++)
        qsort(f->series[i].points, (size_t)f->series[i].n_points, sizeof(*f->series[i].points),
              by_x);
    colour(f);
    if (f->n_series > MOST_SERIES && f->desc->kind != EW_FIGURE_STACK) {
        f->left_out = f->n_series - MOST_SERIES;
        f->n_series = MOST_SERIES;
    }
    if (f->desc->trend)
        EW_TRY(ew_figure_trends(a, f));
    return f->desc->front ? add_fronts(a, f) : EW_OK;
}
