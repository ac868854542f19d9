/* SPDX-License-Identifier: Apache-2.0 */
/* Charts of predictions. */
#include "cli/predict_figures.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "report/page.h"

static const struct ew_figure_desc descs[] = {
    {.id = "predicted-measured",
     .title = "Predicted against measured time",
     .about = "Each was held out of the fit that predicted it.  Bars are 90 % intervals; on the "
              "line the prediction is exact.",
     .kind = EW_FIGURE_POINTS,
     .whiskers = "90 % intervals",
     .log = true,
     .log_x = true},
    {.id = "error-by-mode",
     .title = "Error of predictions by mode",
     .about = "Error of the predictions of held-out modes, over the measured time.",
     .kind = EW_FIGURE_POINTS,
     .log_x = true},
    {.id = "calibration",
     .title = "Calibration of intervals",
     .about = "Share of held-out measurements inside an interval, over the share that it should "
              "hold.  Below the line intervals are too narrow.",
     .kind = EW_FIGURE_POINTS},
    {.id = "front",
     .title = "Time and energy of all modes",
     .about = "Pareto-optimal modes with the 90 % band of their energy, and the measured modes.",
     .kind = EW_FIGURE_POINTS,
     .log_x = true,
     .front = true},
};

enum { AGAINST, ERRORS, CALIBRATION, FRONT };

/* ---- Parts ----------------------------------------------------------------------------------- */

static ew_err add_figure(struct ew_figures *f, int desc, const char *workload,
                         const struct ew_axis axes[2], struct ew_figure **out)
{
    EW_TRY(ew_grow((void **)&f->v, &f->cap, f->n + 1, sizeof(*f->v)));
    struct ew_figure *x = &f->v[f->n];
    *x = (struct ew_figure){.desc = &descs[desc], .facet = "", .x = axes[0], .n_measures = 2};
    x->y[0] = axes[1];
    x->measure[0] = axes[0];
    x->measure[1] = axes[1];
    x->id = ew_arena_printf(&f->arena, "%s-%d", descs[desc].id, f->n);
    x->title =
        ew_arena_printf(&f->arena, "%s%s%s", workload, *workload ? ": " : "", descs[desc].title);
    x->series = ew_arena_array(&f->arena, 4, sizeof(*x->series));
    EW_CHECK(x->id && x->title && x->series, EW_ERR_MEMORY, "no memory for figures");
    f->n++;
    *out = x;
    return EW_OK;
}

static ew_err add_series(struct ew_figures *f, struct ew_figure *x, const char *name,
                         enum ew_series_shape shape, int room, struct ew_series **out)
{
    struct ew_series *s = &x->series[x->n_series];
    *s = (struct ew_series){.name = name,
                            .shape = shape,
                            .measure = 1,
                            .colour = x->n_series,
                            .front = shape == EW_SHAPE_LINE,
                            .quality = EW_QUALITY_MODELLED};
    s->points = ew_arena_array(&f->arena, (size_t)room + 1, sizeof(*s->points));
    EW_CHECK(s->points, EW_ERR_MEMORY, "no memory for figures");
    x->n_series++;
    *out = s;
    return EW_OK;
}

static void put(struct ew_series *s, double x, double y, double low, double high)
{
    if (isfinite(x) && isfinite(y))
        s->points[s->n_points++] = (struct ew_point){.x = x, .y = y, .low = low, .high = high};
}

static const struct ew_axis seconds = {"measured time", "s", 1, EW_BETTER_LOWER};

/* ---- Figures --------------------------------------------------------------------------------- */

static ew_err against(struct ew_figures *f, const struct ew_predict_picture *p)
{
    const struct ew_axis axes[] = {seconds, {"predicted time", "s", 1, EW_BETTER_LOWER}};
    const struct ew_holdout *t = p->left_out;
    struct ew_figure *x;
    struct ew_series *dots, *line;
    double low = HUGE_VAL, high = 0;
    EW_TRY(add_figure(f, AGAINST, p->measured->workload, axes, &x));
    EW_TRY(add_series(f, x, "left out", EW_SHAPE_DOT, t->n, &dots));
    EW_TRY(add_series(f, x, "exact", EW_SHAPE_LINE, 2, &line));
    for (int i = 0; i < t->n; i++) {
        const double time = p->measured->time[t->row[i]];
        const struct ew_interval *g = &t->predicted[i].time;
        put(dots, time, g->mid, g->low90, g->high90);
        low = fmin(low, time);
        high = fmax(high, time);
    }
    put(line, low, low, NAN, NAN);
    put(line, high, high, NAN, NAN);
    x->runs = t->n;
    return EW_OK;
}

static ew_err errors(struct ew_figures *f, const struct ew_predict_picture *p)
{
    const struct ew_axis axes[] = {seconds, {"error", "%", 1, EW_BETTER_LOWER}};
    const struct ew_holdout *t = p->left_out;
    struct ew_figure *x;
    struct ew_series *time, *power;
    EW_TRY(add_figure(f, ERRORS, p->measured->workload, axes, &x));
    EW_TRY(add_series(f, x, "time", EW_SHAPE_DOT, t->n, &time));
    EW_TRY(add_series(f, x, "power", EW_SHAPE_DOT, t->n, &power));
    for (int i = 0; i < t->n; i++) {
        const int row = t->row[i];
        const double at = p->measured->time[row];
        put(time, at, 100 * (t->predicted[i].time.mid / at - 1), NAN, NAN);
        put(power, at, 100 * (t->predicted[i].power.mid / p->measured->power[row] - 1), NAN, NAN);
    }
    x->runs = t->n;
    return EW_OK;
}

/* The confidence level whose interval just contains `v`: P(|Z| <= |log(v / mid)| / sigma). */
static double level(const struct ew_interval *g, double v)
{
    return erf(fabs(log(v / g->mid)) / (log(g->high90 / g->mid) / 1.645) / sqrt(2));
}

static ew_err calibration(struct ew_figures *f, const struct ew_predict_picture *p)
{
    const struct ew_axis axes[] = {{"should be in the interval", "%", 1, EW_BETTER_NEITHER},
                                   {"is in it", "%", 1, EW_BETTER_NEITHER}};
    const struct ew_holdout *t = p->left_out;
    struct ew_figure *x;
    struct ew_series *time, *power, *line;
    EW_TRY(add_figure(f, CALIBRATION, p->measured->workload, axes, &x));
    EW_TRY(add_series(f, x, "time", EW_SHAPE_DOT, 20, &time));
    EW_TRY(add_series(f, x, "power", EW_SHAPE_DOT, 20, &power));
    EW_TRY(add_series(f, x, "right", EW_SHAPE_LINE, 2, &line));
    for (int k = 1; k < 20; k++) {
        int in_time = 0, in_power = 0, with_power = 0;
        for (int i = 0; i < t->n; i++) {
            const double watts = p->measured->power[t->row[i]];
            const struct ew_prediction *v = &t->predicted[i];
            in_time += level(&v->time, p->measured->time[t->row[i]]) <= 0.05 * k;
            if (!isfinite(watts) || !isfinite(v->power.mid))
                continue;
            with_power++;
            in_power += level(&v->power, watts) <= 0.05 * k;
        }
        put(time, 5 * k, 100.0 * in_time / t->n, NAN, NAN);
        if (with_power)
            put(power, 5 * k, 100.0 * in_power / with_power, NAN, NAN);
    }
    put(line, 0, 0, NAN, NAN);
    put(line, 100, 100, NAN, NAN);
    x->runs = t->n;
    return EW_OK;
}

static int by_x(const void *a, const void *b)
{
    const struct ew_point *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

static ew_err front(struct ew_figures *f, const struct ew_predict_picture *p)
{
    const struct ew_axis axes[] = {{"time", "s", 1, EW_BETTER_LOWER},
                                   {"energy", "J", 1, EW_BETTER_LOWER}};
    const struct ew_predicted *v = p->predicted;
    struct ew_figure *x;
    struct ew_series *line, *dots, *low, *high;
    EW_TRY(add_figure(f, FRONT, p->measured->workload, axes, &x));
    EW_TRY(add_series(f, x, "predicted front", EW_SHAPE_LINE, v->n, &line));
    EW_TRY(add_series(f, x, "90 % interval from", EW_SHAPE_LINE, v->n, &low));
    EW_TRY(add_series(f, x, "to", EW_SHAPE_LINE, v->n, &high));
    EW_TRY(add_series(f, x, "measured", EW_SHAPE_DOT, p->measured->n, &dots));
    for (int i = 0; i < v->n; i++)
        if (v->front[i]) {
            put(line, v->v[i].time.mid, v->v[i].energy.mid, NAN, NAN);
            put(low, v->v[i].time.mid, v->v[i].energy.low90, NAN, NAN);
            put(high, v->v[i].time.mid, v->v[i].energy.high90, NAN, NAN);
        }
    qsort(line->points, (size_t)line->n_points, sizeof(*line->points), by_x);
    qsort(low->points, (size_t)low->n_points, sizeof(*low->points), by_x);
    qsort(high->points, (size_t)high->n_points, sizeof(*high->points), by_x);
    for (int i = 0; i < p->measured->n; i++)
        put(dots, p->measured->time[i], p->measured->time[i] * p->measured->power[i], NAN, NAN);
    dots->quality = v->simulated ? EW_QUALITY_SIMULATED : EW_QUALITY_MEASURED;
    if (!line->n_points)
        x->missing = "power was not measured";
    x->runs = p->measured->n;
    return EW_OK;
}

ew_err ew_predict_figures_add(struct ew_figures *f, const struct ew_predict_picture *p)
{
    EW_TRY(against(f, p));
    EW_TRY(errors(f, p));
    EW_TRY(calibration(f, p));
    return p->predicted ? front(f, p) : EW_OK;
}

ew_err ew_predict_figures_write(const struct ew_figures *f, const char *path)
{
    struct ew_file_out out;
    const struct ew_results none = {0};
    const struct ew_page_opts o = {.title = "Predictions",
                                   .about = "Predicted time and energy of untried settings, and "
                                            "the errors of such predictions on held-out ones."};
    EW_TRY(ew_file_out_open(path, &out));
    const ew_err e = ew_page_write(&none, f, &o, out.f);
    if (e == EW_OK)
        return ew_file_out_commit(&out);
    ew_file_out_abort(&out);
    return e;
}
