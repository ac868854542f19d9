/* SPDX-License-Identifier: Apache-2.0 */
/* Lines through dots: by least squares, and published ones. */
#include <math.h>
#include <string.h>

#include "report/figure_stat.h"

#define LEAST_POINTS 3 /* two points always lie on a line */

/* The point of the line at x, an exponent of ten on a logarithmic axis. */
static struct ew_point at(const struct ew_figure *f, const struct ew_line *l, double x)
{
    return (struct ew_point){.x = x,
                             .y = l->intercept + l->slope * (f->desc->log_x ? log10(x) : x),
                             .low = NAN,
                             .high = NAN};
}

/* Fits a line through the points; *found is false if there is none. */
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

/* ---- Published lines ---- */

/* The published value that belongs to the same line as `slope`; nan: none. */
static double published(const struct ew_results *r, const struct ew_published_row *slope,
                        const char *fit, const char *what)
{
    const size_t n = strlen(fit);
    for (int i = 0; i < r->n_published; i++) {
        const struct ew_published_row *p = &r->published[i];
        if (p->metric && strncmp(p->metric, fit, n) == 0 && strcmp(p->metric + n, what) == 0 &&
            strcmp(p->settings, slope->settings) == 0 && strcmp(p->board, slope->board) == 0)
            return p->value;
    }
    return NAN;
}

/* In the units of the figure: a published MB is a million bytes. */
static struct ew_line line_of(const struct ew_figure *f, const struct ew_results *r,
                              const struct ew_published_row *p)
{
    const char *fit = f->desc->published_fit;
    const bool mega = p->unit && strncmp(p->unit, "MB", 2) == 0;
    const double sy = f->measure[1].scale * (mega ? 1e6 : 1), sx = f->measure[0].scale;
    return (struct ew_line){.slope = p->value * sy / sx,
                            .intercept = published(r, p, fit, "_bias") * sy,
                            .r = published(r, p, fit, "_pearson"),
                            .p = published(r, p, fit, "_p_value")};
}

/* From the lowest to the highest x of all dots. */
static ew_err add_published(struct ew_arena *a, struct ew_figure *f, const char *name,
                            const char *of, const struct ew_line *line)
{
    double from = INFINITY, to = -INFINITY;
    struct ew_series s = {.name = name,
                          .shape = EW_SHAPE_LINE,
                          .trend = true,
                          .quality = -1,
                          .published = true,
                          .points = ew_arena_array(a, 2, sizeof(*s.points)),
                          .n_points = 2};
    EW_CHECK(s.points && name && of, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    for (int i = 0; i < f->n_series; i++) {
        const struct ew_series *o = &f->series[i];
        for (int j = 0; !o->trend && j < o->n_points; j++) {
            from = fmin(from, o->points[j].x);
            to = fmax(to, o->points[j].x);
            if (strcmp(o->points[j].group->series, of) == 0)
                s.colour = o->colour;
        }
    }
    s.points[0] = at(f, line, from);
    s.points[1] = at(f, line, to);
    f->series[f->n_series++] = s;
    f->trends[f->n_trends++] = (struct ew_trend){name, *line};
    return EW_OK;
}

ew_err ew_figure_published_lines(struct ew_arena *a, struct ew_figure *f,
                                 const struct ew_results *r)
{
    const char *fit = f->desc->published_fit;
    const size_t n = strlen(fit);
    const size_t room = (size_t)f->n_series + (size_t)r->n_published + 1;
    struct ew_series *series = ew_arena_array(a, room, sizeof(*series));
    struct ew_trend *trends = ew_arena_array(a, room, sizeof(*trends));
    EW_CHECK(series && trends, EW_ERR_MEMORY, "no memory for figure %s", f->id);
    for (int i = 0; i < f->n_series; i++)
        series[i] = f->series[i];
    for (int i = 0; i < f->n_trends; i++)
        trends[i] = f->trends[i];
    f->series = series;
    f->trends = trends;
    for (int i = 0; i < r->n_published; i++) {
        const struct ew_published_row *p = &r->published[i];
        if (!p->metric || strncmp(p->metric, fit, n) != 0 || strcmp(p->metric + n, "_slope") != 0)
            continue;
        const struct ew_line line = line_of(f, r, p);
        const char *of =
            ew_arena_strdup(a, strchr(p->settings, '=') ? strchr(p->settings, '=') + 1 : "");
        if (!isfinite(line.intercept))
            continue;
        EW_TRY(add_published(a, f, ew_arena_printf(a, "%s, %s (published)", of ? of : "", p->board),
                             of, &line));
        f->cite = p->cite;
    }
    return EW_OK;
}
