/* SPDX-License-Identifier: Apache-2.0 */
/* Fitting a law to measurements: Levenberg-Marquardt on the posterior. */
#include "advise/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "advise/cholesky.h"
#include "advise/residual_gp.h"
#include "base/order_stats.h"
#include "base/rng.h"

#define STEPS   80
#define ROUNDS  6 /* of evaluating the noise, then descending with it */
#define SEED    3
#define FREEDOM 4 /* of the Student errors */

/* ---- One step -------------------------------------------------------------------------------- */

struct state {
    const struct ew_fit_data *data;
    struct ew_fit *f;
    struct ew_law_point *points;
};

/* Number of parameters that are searched. */
static int searched(const struct state *s)
{
    return s->f->prior.n - s->f->prior.n_linear;
}

static double weight(double r, double sigma)
{
    return fmin((FREEDOM + 1) / (FREEDOM + r * r / (sigma * sigma)), 1.25);
}

/* Minus the logarithm of the posterior, but for constants. */
static double cost(const struct state *s, const double *theta, const struct ew_law_point *points)
{
    double sum = 0;
    for (int i = 0; i < s->data->n; i++) {
        const double z = (s->data->y[i] - points[i].y) / points[i].sigma;
        sum += 0.5 * (FREEDOM + 1) * log1p(z * z / FREEDOM) + log(points[i].sigma);
    }
    for (int j = 0; j < s->f->prior.n; j++) {
        const double z = (theta[j] - s->f->prior.mean[j]) / s->f->prior.sd[j];
        sum += 0.5 * z * z;
    }
    return sum;
}

/* The posterior's information matrix (k x k) and gradient at theta. */
static void normal_equations(const struct state *s, const double *theta, double *h, double *g)
{
    const struct ew_prior *p = &s->f->prior;
    const int k = searched(s);
    memset(h, 0, (size_t)k * k * sizeof(*h));
    for (int j = 0; j < k; j++) {
        const double precision = 1 / (p->sd[j] * p->sd[j]);
        h[j * k + j] = precision;
        g[j] = (p->mean[j] - theta[j]) * precision;
    }
    for (int i = 0; i < s->data->n; i++) {
        const struct ew_law_point *q = &s->points[i];
        const double r = s->data->y[i] - q->y;
        const double w = weight(r, q->sigma) / (q->sigma * q->sigma);
        for (int a = 0; a < k; a++) {
            g[a] += w * r * q->jac[a];
            for (int b = 0; b <= a; b++)
                h[a * k + b] += w * q->jac[a] * q->jac[b];
        }
    }
}

/* Tries theta plus the damped step; true where that lowers the cost. */
static bool try_step(struct state *s, const double *h, const double *g, double damping, double *now)
{
    const int k = searched(s), n = s->data->n;
    double l[EW_LAW_PARAMS * EW_LAW_PARAMS], step[EW_LAW_PARAMS], theta[EW_LAW_PARAMS];
    memcpy(theta, s->f->theta, sizeof(theta));
    memcpy(l, h, (size_t)k * k * sizeof(*l));
    memcpy(step, g, (size_t)k * sizeof(*step));
    for (int j = 0; j < k; j++)
        l[j * k + j] *= 1 + damping;
    if (!ew_chol(l, k))
        return false;
    ew_chol_solve(l, k, step);
    for (int j = 0; j < k; j++)
        theta[j] += fmax(-1, fmin(1, step[j]));
    struct ew_law_point *tried = s->points + n;
    s->f->law(s->f->ctx, theta, s->data->modes, n, tried);
    for (int i = 0; i < n; i++)
        tried[i].sigma = s->points[i].sigma; /* the noise is constant within a step */
    const double c = cost(s, theta, tried);
    if (!(c < *now))
        return false;
    *now = c;
    memcpy(s->f->theta, theta, (size_t)k * sizeof(*theta));
    memcpy(s->points, tried, (size_t)n * sizeof(*tried));
    return true;
}

static void descend(struct state *s)
{
    double h[EW_LAW_PARAMS * EW_LAW_PARAMS], g[EW_LAW_PARAMS], damping = 1e-3;
    double now = cost(s, s->f->theta, s->points);
    for (int i = 0; i < STEPS && damping < 1e8; i++) {
        const double before = now;
        normal_equations(s, s->f->theta, h, g);
        while (damping < 1e8 && !try_step(s, h, g, damping, &now))
            damping *= 5;
        damping = fmax(damping / 10, 1e-9);
        if (before - now < 1e-9 * (1 + fabs(now)))
            break;
    }
}

/* ---- Before and after ------------------------------------------------------------------------ */

/* Shifts the prior's amounts so that the median residual is 0. */
static ew_err own_units(struct state *s)
{
    const int n = s->data->n;
    double *left = malloc((size_t)n * sizeof(*left));
    EW_CHECK(left, EW_ERR_MEMORY, "no memory for %d measurements", n);
    s->f->law(s->f->ctx, s->f->prior.mean, s->data->modes, n, s->points);
    for (int i = 0; i < n; i++)
        left[i] = s->data->y[i] - s->points[i].y;
    const double median = ew_median(left, n);
    for (int j = 0; j < s->f->prior.n_scale; j++)
        s->f->prior.mean[j] += median;
    free(left);
    return EW_OK;
}

static void descend_rounds(struct state *s)
{
    struct ew_fit *f = s->f;
    double before = HUGE_VAL;
    f->law(f->ctx, f->theta, s->data->modes, s->data->n, s->points);
    for (int i = 0; i < ROUNDS; i++) {
        descend(s);
        f->law(f->ctx, f->theta, s->data->modes, s->data->n, s->points);
        const double now = cost(s, f->theta, s->points);
        if (fabs(before - now) < 1e-5)
            break;
        before = now;
    }
}

/* Descends from several starts; leaves the best in theta. */
static ew_err search(struct state *s)
{
    const struct ew_prior *p = &s->f->prior;
    double best[EW_LAW_PARAMS], low = HUGE_VAL;
    const int starts = s->data->starts ? s->data->starts : EW_FIT_STARTS;
    for (int i = 0; i < starts; i++) {
        memcpy(s->f->theta, p->mean, sizeof(s->f->theta));
        for (int j = 0; i > 0 && j < searched(s); j++)
            s->f->theta[j] += p->sd[j] * ew_rng_normal(SEED, (uint64_t)i, (uint64_t)j);
        descend_rounds(s);
        const double c = cost(s, s->f->theta, s->points);
        if (c < low) {
            low = c;
            memcpy(best, s->f->theta, sizeof(best));
        }
    }
    EW_CHECK(low < HUGE_VAL, EW_ERR_ARG, "the measurements do not determine a model");
    memcpy(s->f->theta, best, sizeof(best));
    return EW_OK;
}

/* The same from at most EW_FIT_ROWS of the measurements, spread over them all. */
static ew_err search_part(struct state *s)
{
    const struct ew_fit_data *all = s->data;
    struct ew_mode modes[EW_FIT_ROWS];
    double y[EW_FIT_ROWS];
    struct ew_fit_data part = {.modes = modes, .y = y, .starts = all->starts};
    part.n = all->n < EW_FIT_ROWS ? all->n : EW_FIT_ROWS;
    for (int i = 0; i < part.n; i++) {
        const int row = (int)((int64_t)i * all->n / part.n);
        modes[i] = all->modes[row];
        y[i] = all->y[row];
    }
    s->data = &part;
    const ew_err err = search(s);
    s->data = all;
    return err;
}

static ew_err fit(struct ew_arena *a, struct state *s)
{
    struct ew_fit *f = s->f;
    const int n = s->data->n;
    for (int i = 0; i < n; i++)
        EW_CHECK(isfinite(s->data->y[i]), EW_ERR_ARG, "measurement %d is not a positive number",
                 i + 1);
    if (s->data->own_units)
        EW_TRY(own_units(s));
    EW_TRY(search_part(s));
    descend_rounds(s);
    return ew_residual_gp_fit(a, f, s->data, s->points);
}

ew_err ew_fit(struct ew_arena *a, ew_law *law, const void *ctx, const struct ew_prior *prior,
              const struct ew_fit_data *data, struct ew_fit *out)
{
    *out = (struct ew_fit){.law = law, .ctx = ctx, .prior = *prior, .n = data->n};
    out->z = ew_arena_array(a, (size_t)data->n, sizeof(*out->z));
    out->z_usual = ew_arena_array(a, (size_t)data->n, sizeof(*out->z_usual));
    out->loo_ln = ew_arena_array(a, (size_t)data->n, sizeof(*out->loo_ln));
    struct state s = {.data = data, .f = out};
    s.points = calloc((size_t)data->n * 2, sizeof(*s.points));
    ew_err err = EW_OK;
    if (!s.points || !out->z || !out->z_usual || !out->loo_ln)
        err = ew_fail(EW_ERR_MEMORY, "no memory for %d measurements", data->n);
    else
        err = fit(a, &s);
    free(s.points);
    return err;
}

void ew_fit_at(const struct ew_fit *f, const struct ew_mode *m, const struct ew_law_point *p,
               double *scratch, double *mean, double *var)
{
    ew_residual_gp_at(f, m, p, scratch, mean, var);
    *var = fmax(*var, 0);
}
