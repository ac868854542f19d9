/* SPDX-License-Identifier: Apache-2.0 */
/* Figures as JSON: what the page's script draws, and --json. */
#include "report/figure_json.h"

#include <math.h>

#include "report/figure_stat.h"

static const char *kind_name(enum ew_figure_kind k)
{
    static const char *const names[] = {
        [EW_FIGURE_STACK] = "stack",   [EW_FIGURE_BARS] = "bars",     [EW_FIGURE_LINES] = "lines",
        [EW_FIGURE_BOXES] = "boxes",   [EW_FIGURE_POINTS] = "points", [EW_FIGURE_TRACE] = "trace",
        [EW_FIGURE_MATRIX] = "matrix",
    };
    return names[k];
}

static const char *shape_name(enum ew_series_shape s)
{
    static const char *const names[] = {[EW_SHAPE_BAR] = "bar",
                                        [EW_SHAPE_LINE] = "line",
                                        [EW_SHAPE_BOX] = "box",
                                        [EW_SHAPE_DOT] = "dot",
                                        [EW_SHAPE_CELL] = "cell"};
    return names[s];
}

static void axis(struct ew_json *j, const char *key, const struct ew_axis *a)
{
    ew_json_object(j, key);
    ew_json_str(j, "label", a->label);
    ew_json_str(j, "unit", a->unit);
    ew_json_end(j);
}

/* Pages need no more digits than a chart can show. */
static void number(struct ew_json *j, const char *key, double v)
{
    ew_json_num(j, key, j->compact ? ew_stat_brief(v) : v);
}

static void box(struct ew_json *j, const struct ew_stat *y)
{
    const double five[] = {y->low, y->q1, y->median, y->q3, y->high};
    ew_json_array(j, "box");
    for (size_t i = 0; i < EW_COUNT(five); i++)
        number(j, NULL, five[i]);
    ew_json_end(j);
    ew_json_array(j, "values");
    for (int i = 0; i < y->n && i < EW_FIGURE_DOTS; i++)
        number(j, NULL, y->v[i]);
    ew_json_end(j);
}

static void point(struct ew_json *j, const struct ew_series *s, const struct ew_point *p)
{
    ew_json_object(j, NULL);
    number(j, "x", p->x);
    number(j, "y", p->y);
    if (isfinite(p->low))
        number(j, "low", p->low);
    if (isfinite(p->high))
        number(j, "high", p->high);
    if (p->label)
        ew_json_str(j, "label", p->label);
    if (p->group) {
        ew_json_int(j, "runs", p->group->runs);
        if (p->group->noisy)
            ew_json_int(j, "noisy", p->group->noisy);
    }
    if (p->group && s->shape == EW_SHAPE_BOX)
        box(j, &p->group->y[s->measure]);
    ew_json_end(j);
}

static void series(struct ew_json *j, const struct ew_series *s)
{
    ew_json_object(j, NULL);
    ew_json_str(j, "name", s->name);
    ew_json_str(j, "shape", shape_name(s->shape));
    ew_json_int(j, "colour", s->colour);
    ew_json_bool(j, "right", s->right);
    ew_json_bool(j, "front", s->front);
    if (s->trend)
        ew_json_bool(j, "trend", true);
    ew_json_str(j, "quality", s->published ? "published" : ew_figure_quality(s->quality));
    ew_json_array(j, "points");
    for (int i = 0; i < s->n_points; i++)
        point(j, s, &s->points[i]);
    ew_json_end(j);
    ew_json_end(j);
}

static void texts(struct ew_json *j, const char *key, const char *const *v, int n)
{
    ew_json_array(j, key);
    for (int i = 0; i < n; i++)
        ew_json_str(j, NULL, v[i]);
    ew_json_end(j);
}

static void trends(struct ew_json *j, const struct ew_figure *f)
{
    if (!f->n_trends)
        return;
    ew_json_array(j, "trends");
    for (int i = 0; i < f->n_trends; i++) {
        const struct ew_line *l = &f->trends[i].line;
        ew_json_object(j, NULL);
        ew_json_str(j, "series", f->trends[i].series);
        ew_json_num(j, "slope", l->slope);
        ew_json_num(j, "intercept", l->intercept);
        ew_json_num(j, "r2", l->r * l->r);
        ew_json_num(j, "pearson", l->r);
        ew_json_num(j, "p", l->p);
        ew_json_int(j, "n", l->n);
        ew_json_end(j);
    }
    ew_json_end(j);
}

void ew_figure_json(struct ew_json *j, const struct ew_figure *f)
{
    ew_json_object(j, NULL);
    ew_json_str(j, "id", f->id);
    ew_json_str(j, "kind", kind_name(f->desc->kind));
    ew_json_str(j, "title", f->title);
    ew_json_str(j, "missing", f->missing);
    if (!f->missing) {
        axis(j, "x", &f->x);
        axis(j, "left", &f->y[0]);
        ew_json_bool(j, "log", ew_figure_log(f));
        if (f->desc->log_x)
            ew_json_bool(j, "log_x", true);
        if (f->y[1].label)
            axis(j, "right", &f->y[1]);
        texts(j, "categories", f->categories, f->n_categories);
        texts(j, "rows", f->rows, f->n_rows);
        ew_json_array(j, "bands");
        for (int i = 0; i < f->n_bands; i++) {
            ew_json_object(j, NULL);
            ew_json_str(j, "name", f->bands[i].name);
            ew_json_num(j, "from", f->bands[i].from);
            ew_json_num(j, "to", f->bands[i].to);
            ew_json_end(j);
        }
        ew_json_end(j);
        ew_json_array(j, "series");
        for (int i = 0; i < f->n_series; i++)
            series(j, &f->series[i]);
        ew_json_end(j);
        trends(j, f);
        ew_json_int(j, "runs", f->runs);
        ew_json_int(j, "noisy", f->noisy);
    }
    ew_json_end(j);
}
