/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a step: an accelerator under a roofline, a loader on some cores beside it, launches.
 *
 *   G = (A^p + B^p)^(1/p),  A = e^la / gpu,  B = e^lb / mem
 *   L = e^ll / e  fe^-al  (1 + e^h sqrt(cpu) / mem)
 *   t = (G^q + L^q)^(1/q) + e^lk / cpu + e^lt
 *
 * with e useful cores out of those beside the s reserved ones, at most as many as there are
 * workers, and fe the clock that the system leaves of each core. */
#include "advise/law.h"

#include <math.h>

/* Means and deviations over training and inference of networks on an AGX Orin; three times as wide
 * changes errors from ten modes by half a point, so they serve other boards too. */
const struct ew_prior ew_time_prior = {
    .n = EW_TIME_PARAMS,
    .n_scale = 5,
    .mean = {0, 0.9, 1.35, -1.6, -3, 0.55, 1.4, 1.2, 0.95, -1.5, -2.1, 0.9},
    .sd = {1, 0.25, 0.5, 0.6, 1.2, 0.5, 0.8, 0.75, 0.45, 0.35, 0.45, 0.1},
};

#define NOISE_GPU    0.0117 /* standard deviation of ln t where the accelerator decides */
#define NOISE_LOADER 0.047  /* where the loader does */

/* The parameters with their exponentials taken. */
struct coeffs {
    double gpu, mem, loader, launch, fixed, p, q, workers3, reserved, cache, system, cpu_pow;
};

static struct coeffs coeffs(const double *t)
{
    return (struct coeffs){.gpu = exp(t[EW_TIME_GPU]),
                           .mem = exp(t[EW_TIME_MEM]),
                           .loader = exp(t[EW_TIME_LOADER]),
                           .launch = exp(t[EW_TIME_LAUNCH]),
                           .fixed = exp(t[EW_TIME_FIXED]),
                           .p = 1 + exp(t[EW_TIME_ROOFLINE]),
                           .q = 1 + exp(t[EW_TIME_OVERLAP]),
                           .workers3 = exp(-3 * t[EW_TIME_WORKERS]),
                           .reserved = t[EW_TIME_RESERVED],
                           .cache = exp(t[EW_TIME_CACHE]),
                           .system = 2 * exp(t[EW_TIME_SYSTEM]),
                           .cpu_pow = t[EW_TIME_CPU_POW]};
}

/* (a^p + b^p)^(1/p); *share gets b^p / (a^p + b^p). */
static double soft_max(double a, double b, double p, double *share)
{
    const double high = fmax(a, b), low = fmin(a, b);
    const double r = pow(low / high, p);
    *share = b >= a ? 1 / (1 + r) : r / (1 + r);
    return high * pow(1 + r, 1 / p);
}

static struct ew_time_parts parts_at(const struct coeffs *k, const struct ew_mode *m)
{
    struct ew_time_parts t;
    double memory_share;
    t.gpu = soft_max(k->gpu / m->gpu, k->mem / m->mem, k->p, &memory_share);
    const double free_cores = fmax(m->cores - k->reserved, 0.1);
    const double useful = 1 / cbrt(1 / (free_cores * free_cores * free_cores) + k->workers3);
    const double clock = fmax(m->cpu - k->system / m->cores, 0.15 * m->cpu);
    t.loader =
        k->loader / useful * pow(clock, -k->cpu_pow) * (1 + k->cache * sqrt(m->cpu) / m->mem);
    const double step = soft_max(t.gpu, t.loader, k->q, &t.share);
    t.total = step + k->launch / m->cpu + k->fixed;
    return t;
}

void ew_time_parts(const double *theta, const struct ew_mode *modes, int n,
                   struct ew_time_parts *out)
{
    const struct coeffs k = coeffs(theta);
    for (int i = 0; i < n; i++)
        out[i] = parts_at(&k, &modes[i]);
}

void ew_time_law(const void *ctx, const double *theta, const struct ew_mode *modes, int n,
                 struct ew_law_point *out)
{
    const double step = 1e-6; /* of differences: rounding gives 1e-10, curvature 1e-6 */
    struct coeffs k = coeffs(theta), beside[EW_TIME_PARAMS];
    for (int j = 0; j < EW_TIME_PARAMS; j++) {
        double moved[EW_TIME_PARAMS];
        for (int i = 0; i < EW_TIME_PARAMS; i++)
            moved[i] = theta[i] + (i == j ? step : 0);
        beside[j] = coeffs(moved);
    }
    (void)ctx;
    for (int i = 0; i < n; i++) {
        const struct ew_time_parts t = parts_at(&k, &modes[i]);
        out[i].y = log(t.total);
        out[i].sigma = NOISE_GPU * (1 - t.share) + NOISE_LOADER * t.share;
        for (int j = 0; j < EW_TIME_PARAMS; j++)
            out[i].jac[j] = (parts_at(&beside[j], &modes[i]).total / t.total - 1) / step;
    }
}
