/* SPDX-License-Identifier: Apache-2.0 */
/* Lines through dots: by least squares, and published ones. */
#include <math.h>
#include <string.h>

#include "report/figure_stat.h"

#define LEAST_POINTS 3 /* two are on a line whatever they say */

/* Where the line lies at x, which is a power of ten on a logarithmic axis. */
static struct ew_point at(const struct ew_figure *f, const struct ew_line *l, double x)
{
    return (struct ew_point){.x = x,
                             .y = l->intercept + l->slope * (f->desc->log_x ? log10(x) : x),
                             .low = NAN,
                             .high = NAN};
}

/* False: there is no line through these. */
static ew_err fit(struct ew_arena *a, const struct ew_figure *f, const struct ew_series *s,
                  struct ew_line *line, bool *found)
{
    double *x = ew_arena_array(a, (size_t)s->n_points + 1, sizeof(*x));
    double *y = ew_arena_array(a, (size_t)s->n_points + 1, sizeof(*y));
    int n = 0;
    *found = false;
    EW_CHECK(x && y, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    for (int i = 0; i < s->n_points; i++) {
        const double v = f->desc->log_x ? log10(s->points[i].x) : s->points[i].x;
        if (!isfinite(v))
            continue;
        x[n] = v;
        y[n++] = s->points[i].y;
    }
    *found = n >= LEAST_POINTS && ew_line_fit(x, y, n, line) == EW_OK;
    return EW_OK;
}

ew_err ew_figure_trends(struct ew_arena *a, struct ew_figure *f)
{
    const int own = f->n_series;
    f->trends = ew_arena_array(a, (size_t)own + 1, sizeof(*f->trends));
    EW_CHECK(f->trends, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    for (int i = 0; i < own; i++) {
        const struct ew_series *s = &f->series[i];
        struct ew_line line;
        bool found;
        EW_TRY(fit(a, f, s, &line, &found));
        if (!found)
            continue;
        struct ew_series t = {.name = s->name,
                              .shape = EW_SHAPE_LINE,
                              .colour = s->colour,
                              .trend = true,
                              .quality = s->quality,
                              .published = s->published,
                              .points = ew_arena_array(a, 2, sizeof(*t.points)),
                              .n_points = 2};
        EW_CHECK(t.points, EW_ERR_MEMORY, "no memory for figure %s", f->id);
        t.points[0] = at(f, &line, s->points[0].x);
        t.points[1] = at(f, &line, s->points[s->n_points - 1].x);
        f->trends[f->n_trends++] = (struct ew_trend){s->name, line};
        f->series[f->n_series++] = t;
    }
    return EW_OK;
}

/* y = slope * x + intercept between two dots' x, in the figure's units. */
static ew_err add_line(struct ew_arena *a, struct ew_figure *f, const struct ew_series *like,
                       const double ends[2], const double line[2])
{
    struct ew_series *s = &f->series[f->n_series];
    *s = *like;
    s->shape = EW_SHAPE_LINE;
    s->front = true;
    s->n_points = 2;
    s->points = ew_arena_array(a, 2, sizeof(*s->points));
    EW_CHECK(s->points && s->name, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    for (int i = 0; i < 2; i++)
        s->points[i] = (struct ew_point){
            .x = ends[i], .y = line[0] * ends[i] + line[1], .low = NAN, .high = NAN};
    f->n_series++;
    return EW_OK;
}

/* The published one, and that of our own dots. */
ew_err ew_figure_lines(struct ew_arena *a, struct ew_figure *f)
{
    const double sx = f->measure[0].scale, sy = f->measure[1].scale;
    double *x = ew_arena_array(a, (size_t)f->n_groups + 1, sizeof(*x));
    double *y = ew_arena_array(a, (size_t)f->n_groups + 1, sizeof(*y));
    double ends[2] = {INFINITY, -INFINITY};
    struct ew_line own;
    int n = 0;
    EW_CHECK(x && y, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    for (int i = 0; i < f->n_groups; i++) {
        if (f->groups[i].published || isnan(f->groups[i].y[0].mean + f->groups[i].y[1].mean))
            continue;
        x[n] = f->groups[i].y[0].mean;
        y[n] = f->groups[i].y[1].mean;
        ends[0] = fmin(ends[0], x[n]);
        ends[1] = fmax(ends[1], x[n++]);
    }
    if (n < 2 || ew_line_fit(x, y, n, &own) != EW_OK)
        return EW_OK;
    const struct ew_series theirs = {.name = f->desc->line.name, .quality = -1, .published = true};
    EW_TRY(add_line(a, f, &theirs, ends,
                    (const double[]){f->desc->line.slope * sy / sx, f->desc->line.intercept * sy}));
    const struct ew_series ours = {
        .name = ew_arena_printf(a, "line of all dots: %.2g x + %.2g, r = %.3f", own.slope * sx / sy,
                                own.intercept / sy, own.r),
        .quality = f->groups[0].quality};
    return add_line(a, f, &ours, ends, (const double[]){own.slope, own.intercept});
}
