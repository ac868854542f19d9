/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a figure's table. */
#include "report/figure_grid.h"

#include <math.h>
#include <string.h>

/* Nine significant digits (1 ns of 1 s); integers with all digits. */
static ew_err put_exact(struct ew_grid *g, double v)
{
    if (!isfinite(v))
        return ew_grid_put(g, "");
    const bool whole = fabs(v - round(v)) <= 0 && fabs(v) < 1e15;
    return ew_grid_cell(g, whole ? "%.0f" : "%.9g", v);
}

static ew_err heading(struct ew_grid *g, bool number, const char *label, const char *unit,
                      const char *more)
{
    return *unit ? ew_grid_head(g, number, "%s%s [%s]", label, more, unit)
                 : ew_grid_head(g, number, "%s%s", label, more);
}

/* ---- Groups ---- */

/* Text columns that have a value in at least one group. */
struct columns {
    bool x, series, options, machine, noisy, quality;
};

static struct columns columns_of(const struct ew_figure *f)
{
    struct columns c = {0};
    for (int i = 0; i < f->n_groups; i++) {
        const struct ew_group *g = &f->groups[i];
        c.x |= *g->x != 0;
        c.series |= *g->series != 0;
        c.options |= *g->options != 0;
        c.machine |= *g->machine != 0;
        c.noisy |= g->noisy > 0;
        c.quality |= g->quality != f->groups[0].quality;
    }
    return c;
}

/* Whether any group has measure k; otherwise it gets no column. */
static bool measured(const struct ew_figure *f, int k)
{
    for (int i = 0; i < f->n_groups; i++)
        if (f->groups[i].y[k].n)
            return true;
    return false;
}

static bool spreads(const struct ew_figure *f)
{
    return f->desc->kind == EW_FIGURE_BOXES || f->desc->kind == EW_FIGURE_TRACE;
}

/* "network precision" for people. */
static ew_err series_heading(struct ew_grid *g, const char *names)
{
    if (strcmp(names, "when") == 0)
        return heading(g, false, "epochs", "", "");
    const char *space = strchr(names, ' ');
    return space ? ew_grid_head(g, false, "%.*s, %s", (int)(space - names), names, space + 1)
                 : heading(g, false, names, "", "");
}

static ew_err group_head(const struct ew_figure *f, bool exact, struct ew_grid *g)
{
    const struct columns c = columns_of(f);
    const char *series = f->desc->series             ? f->desc->series
                         : f->desc->variants[0].name ? "variant"
                                                     : "run";
    const bool points = f->desc->kind == EW_FIGURE_POINTS;
    const char *x = f->desc->x_label ? f->desc->x_label : f->desc->x ? f->desc->x : "channel";
    if (c.x)
        EW_TRY(heading(g, false, points ? x : f->desc->x ? f->x.label : x, "", ""));
    if (c.series && f->desc->series_label)
        EW_TRY(heading(g, false, f->desc->series_label, f->desc->series_unit, ""));
    else if (c.series)
        EW_TRY(series_heading(g, series));
    if (c.options)
        EW_TRY(heading(g, false, "settings", "", ""));
    if (c.machine)
        EW_TRY(heading(g, false, "machine", "", ""));
    for (int k = 0; k < f->n_measures; k++) {
        const struct ew_axis *a = &f->measure[k];
        if (!measured(f, k))
            continue;
        EW_TRY(heading(g, true, a->label, a->unit, ""));
        if (exact)
            EW_TRY(heading(g, true, a->label, a->unit, " sd"));
        if (spreads(f) || exact) { /* tables for people have the unit in one heading only */
            const char *unit = exact ? a->unit : "";
            EW_TRY(heading(g, true, exact ? a->label : "lowest", unit, exact ? " lowest" : ""));
            EW_TRY(heading(g, true, exact ? a->label : "median", unit, exact ? " median" : ""));
            EW_TRY(heading(g, true, exact ? a->label : "highest", unit, exact ? " highest" : ""));
        }
        if (spreads(f) || exact)
            EW_TRY(heading(g, true, exact ? a->label : "values", "", exact ? " values" : ""));
    }
    EW_TRY(heading(g, true, "runs", "", ""));
    if (exact && c.noisy)
        EW_TRY(heading(g, true, "noisy", "", ""));
    /* A quality that all groups share is in the note below the figure. */
    return c.quality || exact ? heading(g, false, "quality", "", "") : EW_OK;
}

static ew_err measure_cells(const struct ew_figure *f, const struct ew_stat *y, bool exact,
                            struct ew_grid *g)
{
    char a[EW_VALUE_CHARS], b[EW_VALUE_CHARS], c[EW_VALUE_CHARS];
    if (exact) {
        EW_TRY(put_exact(g, y->mean));
        EW_TRY(put_exact(g, y->sd));
        EW_TRY(put_exact(g, y->low));
        EW_TRY(put_exact(g, y->median));
        EW_TRY(put_exact(g, y->high));
        return ew_grid_cell(g, "%d", y->n);
    }
    ew_text_value(y->mean, a);
    if (isfinite(y->sd))
        EW_TRY(ew_grid_cell(g, "%s ± %s", a, ew_text_value(y->sd, b)));
    else
        EW_TRY(ew_grid_cell(g, "%s", a));
    if (!spreads(f))
        return EW_OK;
    EW_TRY(ew_grid_cell(g, "%s", ew_text_value(y->low, a)));
    EW_TRY(ew_grid_cell(g, "%s", ew_text_value(y->median, b)));
    EW_TRY(ew_grid_cell(g, "%s", ew_text_value(y->high, c)));
    return ew_grid_cell(g, "%d", y->n);
}

static ew_err group_row(const struct ew_figure *f, const struct ew_group *row, bool exact,
                        struct ew_grid *g)
{
    const struct columns c = columns_of(f);
    if (c.x)
        EW_TRY(ew_grid_put(g, row->x));
    if (c.series)
        EW_TRY(ew_grid_put(g, row->series));
    if (c.options)
        EW_TRY(ew_grid_put(g, row->options));
    if (c.machine)
        EW_TRY(ew_grid_put(g, row->machine));
    for (int k = 0; k < f->n_measures; k++)
        if (measured(f, k))
            EW_TRY(measure_cells(f, &row->y[k], exact, g));
    if (row->published)
        EW_TRY(ew_grid_put(g, ""));
    else if (row->noisy == row->runs && !exact)
        EW_TRY(ew_grid_cell(g, "%d noisy", row->noisy));
    else if (row->noisy && !exact)
        EW_TRY(ew_grid_cell(g, "%d (%d noisy)", row->runs, row->noisy));
    else
        EW_TRY(ew_grid_cell(g, "%d", row->runs));
    if (exact && c.noisy)
        EW_TRY(ew_grid_cell(g, "%d", row->noisy));
    return c.quality || exact ? ew_grid_put(g, ew_figure_quality(row->quality)) : EW_OK;
}

/* ---- Traces and matrices ---- */

static ew_err trace_cells(const struct ew_figure *f, struct ew_grid *g)
{
    EW_TRY(heading(g, false, "channel", "", ""));
    EW_TRY(heading(g, true, "time", f->x.unit, ""));
    EW_TRY(heading(g, true, f->y[0].label, f->y[0].unit, ""));
    EW_TRY(heading(g, false, "quality", "", ""));
    for (int i = 0; i < f->n_series; i++)
        for (int j = 0; j < f->series[i].n_points; j++) {
            EW_TRY(ew_grid_put(g, f->series[i].name));
            EW_TRY(put_exact(g, f->series[i].points[j].x));
            EW_TRY(put_exact(g, f->series[i].points[j].y));
            EW_TRY(ew_grid_put(g, ew_figure_quality(f->series[i].quality)));
        }
    return EW_OK;
}

static ew_err matrix_cells(const struct ew_figure *f, struct ew_grid *g)
{
    const struct ew_series *s = &f->series[0];
    const int n = f->n_categories;
    EW_TRY(heading(g, false, "true class", "", ""));
    for (int i = 0; i < n; i++)
        EW_TRY(heading(g, true, f->categories[i], "", ""));
    for (int i = 0; i < f->n_rows; i++) {
        const int at = g->n + 1;
        EW_TRY(ew_grid_put(g, f->rows[i]));
        for (int j = 0; j < n; j++)
            EW_TRY(ew_grid_put(g, "0"));
        for (int j = 0; j < s->n_points; j++)
            if ((int)s->points[j].low == i) {
                char *text = ew_arena_printf(&g->arena, "%.0f", s->points[j].y);
                EW_CHECK(text, EW_ERR_MEMORY, "no memory for a table");
                g->cells[at + (int)s->points[j].x] = text;
            }
    }
    return EW_OK;
}

static ew_err fill(const struct ew_figure *f, bool exact, struct ew_grid *g)
{
    if (f->desc->kind == EW_FIGURE_MATRIX)
        return matrix_cells(f, g);
    if (f->desc->kind == EW_FIGURE_TRACE && exact)
        return trace_cells(f, g);
    EW_TRY(group_head(f, exact, g));
    for (int i = 0; i < f->n_groups; i++)
        EW_TRY(group_row(f, &f->groups[i], exact, g));
    return EW_OK;
}

ew_err ew_figure_grid(const struct ew_figure *f, bool exact, struct ew_grid *g)
{
    ew_grid_init(g);
    const ew_err e = fill(f, exact, g);
    if (e != EW_OK)
        ew_grid_fini(g);
    return e;
}
