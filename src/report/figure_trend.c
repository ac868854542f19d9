/* SPDX-License-Identifier: Apache-2.0 */
/* Lines through dots by least squares. */
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
