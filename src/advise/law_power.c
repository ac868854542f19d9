/* SPDX-License-Identifier: Apache-2.0 */
/* The power during a step, by domain.  With x a clock over its maximum, ug and ul the shares of
 * time in which accelerator and loader are busy, and t over the time in the top mode:
 *
 *   P = P0 + Pm xm + Pg xg^gamma (1/4 + ug) 4/5 + Pc (c/cmax) xc^3 + Ps xc
 *       + (Eg xg^2 + Em) / t + El xc^3 ul
 */
#include "advise/law.h"

#include <math.h>
#include <string.h>

#define LN_ORIN                                                                                    \
    {                                                                                              \
        2.4849, 0.7419, 1.5476, 0.6931, -1.8971, 1.3863, 2.5649, 0.6419, 1.0296                    \
    }

/* 12, 2.1, 4.7, 2, 0.15, 4, 13, 1.9 W and 2.8, over the same workloads as the time's prior. */
const struct ew_prior ew_power_prior_orin = {
    .n = EW_POWER_PARAMS,
    .n_scale = 8,
    .mean = LN_ORIN,
    .sd = {0.05, 0.15, 0.2, 0.5, 1.1, 0.85, 0.8, 0.7, 0.2},
};

/* The proportions of that board, taken as a rough guide to others. */
const struct ew_prior ew_power_prior = {
    .n = EW_POWER_PARAMS,
    .n_scale = 8,
    .mean = LN_ORIN,
    .sd = {0.35, 0.5, 0.6, 0.8, 1.2, 1.0, 1.0, 0.9, 0.25},
};

#define NOISE_GPU    0.0185
#define NOISE_LOADER 0.0256

void ew_power_ctx_init(struct ew_power_ctx *c, const struct ew_mode *top, const double *theta)
{
    struct ew_time_parts t;
    ew_time_parts(theta, top, 1, &t);
    *c = (struct ew_power_ctx){.top = *top, .theta = theta, .top_s = t.total};
    ew_time_slopes(theta, top, &c->top_slopes);
}

/* Derivatives of ln P by u, of its terms' shares of P in jac. */
static void by_spread(const struct ew_power_ctx *c, const struct ew_mode *m,
                      const struct ew_time_parts *t, double *jac)
{
    const double ug = t->gpu / t->total, ul = t->loader / t->total;
    const double gpu = ug < 1 ? jac[EW_POWER_GPU] * ug / (0.25 + ug) : 0;
    const double loader = ul < 1 ? jac[EW_POWER_LOADER] : 0;
    const double rate = jac[EW_POWER_STEP_GPU] + jac[EW_POWER_STEP_FIXED];
    struct ew_time_slopes s;
    double *u = jac + EW_POWER_PARAMS;
    ew_time_slopes(c->theta, m, &s);
    memset(u, 0, EW_TIME_PARAMS * sizeof(*u));
    for (int j = 0; j < EW_TIME_PARAMS; j++) {
        const double by = gpu * (s.gpu[j] - s.total[j]) + loader * (s.loader[j] - s.total[j]) +
                          rate * (c->top_slopes.total[j] - s.total[j]);
        for (int i = 0; i <= j; i++)
            u[i] += c->spread[j * EW_TIME_PARAMS + i] * by;
    }
}

static void power_at(const struct ew_power_ctx *c, const double *theta, const struct ew_mode *m,
                     const struct ew_time_parts *t, struct ew_law_point *out)
{
    const double xm = m->mem / c->top.mem, xg = m->gpu / c->top.gpu, xc = m->cpu / c->top.cpu;
    const double ug = fmin(t->gpu / t->total, 1), ul = fmin(t->loader / t->total, 1);
    const double rate = c->top_s / t->total, gamma = exp(theta[EW_POWER_GAMMA]);
    const double cube = xc * xc * xc;
    const double term[EW_POWER_GAMMA] = {
        [EW_POWER_BASE] = 1,
        [EW_POWER_MEM] = xm,
        [EW_POWER_GPU] = pow(xg, gamma) * (0.25 + ug) / 1.25,
        [EW_POWER_CORES] = m->cores / c->top.cores * cube,
        [EW_POWER_CPU] = xc,
        [EW_POWER_STEP_GPU] = xg * xg * rate,
        [EW_POWER_STEP_FIXED] = rate,
        [EW_POWER_LOADER] = cube * ul,
    };
    double watts = 0;
    for (int j = 0; j < EW_POWER_GAMMA; j++) {
        out->jac[j] = exp(theta[j]) * term[j];
        watts += out->jac[j];
    }
    out->jac[EW_POWER_GAMMA] = out->jac[EW_POWER_GPU] * gamma * log(xg);
    for (int j = 0; j < EW_POWER_PARAMS; j++)
        out->jac[j] /= watts;
    if (c->spread)
        by_spread(c, m, t, out->jac);
    out->y = log(watts);
    out->sigma = NOISE_GPU * (1 - t->share) + NOISE_LOADER * t->share;
}

void ew_power_law(const void *ctx, const double *theta, const struct ew_mode *modes, int n,
                  struct ew_law_point *out)
{
    const struct ew_power_ctx *c = ctx;
    for (int i = 0; i < n; i++) {
        struct ew_time_parts t;
        ew_time_parts(c->theta, &modes[i], 1, &t);
        power_at(c, theta, &modes[i], &t, &out[i]);
    }
}
