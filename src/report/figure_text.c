/* SPDX-License-Identifier: Apache-2.0 */
/* Figures for the terminal, Markdown and CSV. */
#include <math.h>
#include <string.h>

#include "report/figure_grid.h"

#define BAR_CELLS 24

ew_err ew_figure_csv(const struct ew_figure *f, FILE *out)
{
    struct ew_grid g;
    EW_TRY(ew_figure_grid(f, true, &g));
    ew_grid_csv(&g, out);
    ew_grid_fini(&g);
    return EW_OK;
}

/* Equations of the fitted lines: "uniform: y = 3.4 x + 1.2, R2 0.98, Pearson 0.99 (p 0.01, 4
 * points)". */
static void note_trends(const struct ew_figure *f, FILE *out)
{
    for (int i = 0; i < f->n_trends; i++) {
        const struct ew_line *l = &f->trends[i].line;
        fputs(i ? "; " : " Lines by least squares: ", out);
        ew_text_plain(f->trends[i].series, out);
        fprintf(out, ": %.3g %s %s %.3g", l->slope, f->desc->log_x ? "log10(x)" : "x",
                l->intercept < 0 ? "-" : "+", fabs(l->intercept));
        if (isnan(l->p)) { /* a line through two points has no goodness of fit */
            fprintf(out, " (%d points)", l->n);
            continue;
        }
        fprintf(out, ", R2 %.3f, Pearson %.3f (p %.2g", l->r * l->r, l->r, l->p);
        if (l->n)
            fprintf(out, ", %d points", l->n);
        putc(')', out);
    }
    if (f->n_trends)
        putc('.', out);
}

#define MOST_STEPS 4 /* most steps of a front that are described */

/* "12 % less energy", "3.4 times the time". */
static void note_change(const struct ew_axis *axis, double from, double to, FILE *out)
{
    const double percent = 100 * fabs(to / from - 1);
    const char *way = to < from ? "less" : "more";
    if (to > 2 * from)
        fprintf(out, "%.2g times the ", to / from);
    else if (percent < 1)
        fprintf(out, "under 1 %% %s ", way);
    else
        fprintf(out, "%.0f %% %s ", percent, way);
    ew_text_plain(axis->label, out);
}

/* Describes the trade-off from one point of a Pareto front to the next. */
static void note_fronts(const struct ew_figure *f, FILE *out)
{
    for (int i = 0; i < f->n_series; i++) {
        const struct ew_series *s = &f->series[i];
        for (int j = 1; s->front && j < s->n_points && j <= MOST_STEPS; j++) {
            const struct ew_point *p = &s->points[j - 1], *q = &s->points[j];
            if (!p->label || !q->label || !(p->x > 0) || !(p->y > 0))
                continue;
            putc(j == 1 ? ' ' : ';', out);
            ew_text_plain(j == 1 ? s->name : "", out);
            fputs(j == 1 ? ": from " : " from ", out);
            ew_text_plain(p->label, out);
            fputs(" to ", out);
            ew_text_plain(q->label, out);
            fputs(" takes ", out);
            note_change(&f->x, p->x, q->x, out);
            fputs(", ", out);
            note_change(&f->y[0], p->y, q->y, out);
        }
        if (s->front && s->n_points > 1 && s->points[0].label)
            fputs(s->n_points > MOST_STEPS + 1 ? "; and so on." : ".", out);
    }
}

void ew_figure_note(const struct ew_figure *f, bool quality, FILE *out)
{
    bool simulated = false, emulated = false, published = false, whiskers = false, mixed = false;
    for (int i = 0; i < f->n_series; i++) {
        simulated |= f->series[i].quality == EW_QUALITY_SIMULATED;
        emulated |= f->series[i].quality == EW_QUALITY_EMULATED;
        published |= f->series[i].published;
        mixed |= f->series[i].quality != f->series[0].quality;
        for (int j = 0; j < f->series[i].n_points; j++)
            whiskers |= isfinite(f->series[i].points[j].low) && !f->series[i].stacked &&
                        f->desc->kind != EW_FIGURE_MATRIX && f->desc->kind != EW_FIGURE_BOXES;
    }
    fprintf(out, "%d %s", f->runs, f->runs == 1 ? "run" : "runs");
    if (f->noisy == f->runs && f->runs)
        fputs(f->runs == 1 ? ", noisy" : ", all noisy", out);
    else if (f->noisy)
        fprintf(out, ", %d of them noisy", f->noisy);
    if (quality && !mixed && f->n_series && !published)
        fprintf(out, ", %s", ew_figure_quality(f->series[0].quality));
    putc('.', out);
    if (f->desc->kind == EW_FIGURE_TRACE)
        fputs(f->n_bands ? " Epochs are placed by their lengths." : "", out);
    else if (whiskers)
        fprintf(out, " Whiskers: %s.",
                f->desc->whiskers ? f->desc->whiskers : "one standard deviation");
    if (f->also && *f->also) {
        fputs(" These vary as well: ", out);
        ew_text_plain(f->also, out);
        putc('.', out);
    }
    if (f->left_out && (f->desc->kind == EW_FIGURE_TRACE || f->desc->kind == EW_FIGURE_MATRIX))
        fprintf(out, " %d more networks have this figure; --study shows those of one study.",
                f->left_out);
    else if (f->left_out)
        fprintf(out, " %d more series are in the table.", f->left_out);
    note_trends(f, out);
    note_fronts(f, out);
    if (f->no_published)
        fputs(
            " Published values belong to the full-size study and are left out of this reduced one.",
            out);
    if (simulated) {
        fputs(" Simulated by a model of ", out);
        ew_text_plain(f->models ? f->models : "a board", out);
        fputs(", not measured on one", out);
        if (f->fitted) {
            fputs("; its constants: ", out);
            ew_text_plain(f->fitted, out);
        }
        putc('.', out);
    }
    if (emulated)
        fputs(" Emulated: real work under an artificial limit.", out);
    if (published) {
        fputs(" Published: ", out);
        ew_text_plain(f->cite ? f->cite : "the study itself", out);
        putc('.', out);
    }
    if (published && f->wrong) {
        fputs(" The printed value is wrong: ", out);
        ew_text_plain(f->wrong, out);
        putc('.', out);
    }
}

/* ---- Small bars ---- */

static double total(const struct ew_figure *f, const struct ew_group *g)
{
    if (f->desc->kind != EW_FIGURE_STACK)
        return f->desc->kind == EW_FIGURE_POINTS ? g->y[1].mean : g->y[0].mean;
    double sum = 0;
    for (int k = 0; k < f->n_measures; k++)
        sum += isfinite(g->y[k].mean) ? g->y[k].mean : 0;
    return sum;
}

static const char *const shade[EW_FIGURE_MAX_Y] = {"█", "▒", "░", "·"};

/* A bar of full block characters and one in eighths; parts of a stack differ in shade. */
static void bar(const struct ew_figure *f, const struct ew_group *g, double most, char *out)
{
    static const char *const eighth[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    *out = 0;
    if (!(most > 0))
        return;
    if (f->desc->kind == EW_FIGURE_STACK) {
        double done = 0;
        int drawn = 0;
        for (int k = 0; k < f->n_measures; k++) {
            done += isfinite(g->y[k].mean) ? g->y[k].mean : 0;
            for (; drawn < (int)lround(BAR_CELLS * done / most) && drawn < BAR_CELLS; drawn++)
                out = stpcpy(out, shade[k]);
        }
        return;
    }
    const double v = total(f, g) / most * BAR_CELLS;
    const int eighths = isfinite(v) && v > 0 ? (int)lround(8 * fmin(v, BAR_CELLS)) : 0;
    for (int i = 0; i < eighths / 8; i++)
        out = stpcpy(out, shade[0]);
    strcpy(out, eighth[eighths % 8]);
}

static double largest(const struct ew_figure *f)
{
    double most = 0;
    for (int i = 0; i < f->n_groups; i++)
        most = fmax(most, total(f, &f->groups[i]));
    return most;
}

/* The measure that the bars show, for their heading. */
static const char *bar_name(const struct ew_figure *f, struct ew_arena *a)
{
    const char *out = "";
    for (int k = 0; out && f->desc->kind == EW_FIGURE_STACK && k < f->n_measures; k++)
        out = ew_arena_printf(a, "%s%s%s %s", out, *out ? " " : "", shade[k], f->measure[k].label);
    if (!out || *out)
        return out;
    return f->desc->kind == EW_FIGURE_POINTS ? f->measure[1].label : f->measure[0].label;
}

/* ---- Terminal ---- */

static ew_err print_grid(const struct ew_figure *f, struct ew_grid *g, FILE *out)
{
    char drawn[BAR_CELLS * 4 + 8];
    const int rows = g->n / g->cols;
    const double most = largest(f);
    if (!f->n_groups)
        return ew_grid_text(g, NULL, out);
    const char **bars = ew_arena_array(&g->arena, (size_t)rows, sizeof(*bars));
    EW_CHECK(bars, EW_ERR_MEMORY, "no memory for a table");
    bars[0] = bar_name(f, &g->arena);
    EW_CHECK(bars[0], EW_ERR_MEMORY, "no memory for a table");
    for (int i = 1; i < rows; i++) {
        bar(f, &f->groups[i - 1], most, drawn);
        bars[i] = ew_arena_strdup(&g->arena, drawn);
        EW_CHECK(bars[i], EW_ERR_MEMORY, "no memory for a table");
    }
    return ew_grid_text(g, bars, out);
}

ew_err ew_figure_text(const struct ew_figure *f, FILE *out)
{
    ew_text_plain(f->title, out);
    putc('\n', out);
    if (f->missing) {
        fprintf(out, "  not shown: %s\n\n", f->missing);
        return EW_OK;
    }
    struct ew_grid g;
    EW_TRY(ew_figure_grid(f, false, &g));
    const ew_err e = print_grid(f, &g, out);
    ew_grid_fini(&g);
    ew_figure_note(f, true, out);
    fputs("\n\n", out);
    return e;
}

/* ---- Markdown ---- */

ew_err ew_figure_markdown(const struct ew_figure *f, FILE *out)
{
    fputs("## ", out);
    ew_text_markdown(f->title, out);
    fputs("\n\n", out);
    if (f->missing) {
        fprintf(out, "Not shown: %s.\n\n", f->missing);
        return EW_OK;
    }
    struct ew_grid g;
    EW_TRY(ew_figure_grid(f, false, &g));
    fprintf(out, "%s\n\n", f->desc->about);
    ew_grid_markdown(&g, out);
    ew_grid_fini(&g);
    putc('\n', out);
    ew_figure_note(f, true, out);
    fputs("\n\n", out);
    return EW_OK;
}
