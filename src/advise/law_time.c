/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a step: an accelerator under a roofline, a loader on some cores beside it, launches.
 *
 *   G = (A^p + B^p)^(1/p),  A = e^la / gpu,  B = e^lb / mem
 *   L = e^ll / e  fe^-al  (1 + e^h sqrt(cpu) / mem)
 *   t = (G^q + L^q)^(1/q) + e^lk / cpu + e^lt
 *
 * with cpu the clock of a core or, where host work waits for memory, less of it; e useful cores out
 * of those beside the s reserved ones, at most as many as there are workers, and fe the clock that
 * the system leaves of each core. */
#include "advise/law.h"

#include <math.h>
#include <string.h>

/* Means and deviations over training and inference of networks on an AGX Orin; three times as wide
 * changes errors from ten modes by half a point, so they serve other boards too. */
const struct ew_prior ew_time_prior = {
    .n = EW_TIME_PARAMS,
    .n_scale = 5,
    .mean = {0, 0.9, 1.35, -1.6, -3, 0.55, 1.4, 1.2, 0.95, -1.5, -2.1, 0.9, -4, 0.7},
    .sd = {1, 0.25, 0.5, 0.6, 1.2, 0.5, 0.8, 0.75, 0.45, 0.35, 0.45, 0.1, 0.3, 0.1},
};

/* As TRAIN's epochs on an AGX Xavier: the accelerator may have next to nothing to do, host work
 * waits for a memory at low clocks (0.66 GHz of it make a cycle of 1 GHz), and each further core
 * brings less than the one before. */
const struct ew_prior ew_time_prior_host = {
    .n = EW_TIME_PARAMS,
    .n_scale = 5,
    .mean = {0, -0.5, 1.35, -1.6, -3, 0.55, 1.4, 0.6, 0.6, -3, -4, 0.9, -0.5, -0.3},
    .sd = {1.5, 1.5, 0.5, 1, 1.2, 0.5, 0.8, 0.75, 0.45, 0.35, 0.45, 0.1, 0.3, 0.5},
};

/* How sharply host work passes from the CPU's clock to the memory's: of TRAIN's epochs on an AGX
 * Xavier, whose launches wait for memory at its low clocks. */
#define HOST_WAIT 2.6

#define NOISE_GPU    0.0117 /* standard deviation of ln t where the accelerator decides */
#define NOISE_LOADER 0.047  /* where the loader does */

/* The parameters with their exponentials taken. */
struct coeffs {
    double gpu, mem, loader, launch, fixed, p, q, workers, reserved, cache, system, cpu_pow;
    double host_mem, r;
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
                           .workers = exp(t[EW_TIME_WORKERS]),
                           .reserved = t[EW_TIME_RESERVED],
                           .cache = exp(t[EW_TIME_CACHE]),
                           .system = 2 * exp(t[EW_TIME_SYSTEM]),
                           .cpu_pow = t[EW_TIME_CPU_POW],
                           .host_mem = exp(t[EW_TIME_HOST_MEM]),
                           .r = 1 + exp(t[EW_TIME_CROWD])};
}

/* (a^p + b^p)^(1/p) and the derivatives of its logarithm. */
struct soft_max {
    double value;
    double share;    /* by ln b; by ln a it is 1 - share */
    double by_power; /* by p */
};

static struct soft_max soft_max(double a, double b, double p)
{
    const double high = fmax(a, b), low = fmin(a, b);
    const double r = pow(low / high, p), low_share = r / (1 + r);
    const double bend = r > 0 ? log(low / high) * low_share : 0;
    return (struct soft_max){.value = high * pow(1 + r, 1 / p),
                             .share = b >= a ? 1 - low_share : low_share,
                             .by_power = (bend - log1p(r) / p) / p};
}

/* What a step consists of, and how the loader's time depends on its settings. */
struct parts {
    struct soft_max gpu, step;
    double loader, total;
    double x;              /* cores that the loader gets */
    struct soft_max crowd; /* by these and by its workers: what a core's work takes */
    struct soft_max host;  /* time of a cycle of host work, which may wait for memory */
    double clock, cache;   /* of a core, left by the system; share of memory time */
    bool x_is_least, clock_is_least;
};

static struct parts parts_at(const struct coeffs *k, const struct ew_mode *m)
{
    struct parts t;
    t.gpu = soft_max(k->gpu / m->gpu, k->mem / m->mem, k->p);
    t.x_is_least = m->cores - k->reserved < 0.1;
    t.x = t.x_is_least ? 0.1 : m->cores - k->reserved;
    t.crowd = soft_max(1 / t.x, 1 / k->workers, k->r);
    t.host = soft_max(1 / m->cpu, k->host_mem / m->mem, HOST_WAIT);
    const double cpu = 1 / t.host.value;
    t.clock_is_least = cpu - k->system / m->cores < 0.15 * cpu;
    t.clock = t.clock_is_least ? 0.15 * cpu : cpu - k->system / m->cores;
    t.cache = k->cache * sqrt(m->cpu) / m->mem;
    t.loader = k->loader * t.crowd.value * pow(t.clock, -k->cpu_pow) * (1 + t.cache);
    t.step = soft_max(t.gpu.value, t.loader, k->q);
    t.total = t.step.value + k->launch * t.host.value + k->fixed;
    return t;
}

/* Derivatives of ln of the accelerator's part by the parameters, the others being 0. */
static void gpu_slopes(const struct coeffs *k, const struct parts *t, double *jac)
{
    jac[EW_TIME_GPU] = 1 - t->gpu.share;
    jac[EW_TIME_MEM] = t->gpu.share;
    jac[EW_TIME_ROOFLINE] = t->gpu.by_power * (k->p - 1);
}

/* The same of the loader's. */
static void loader_slopes(const struct coeffs *k, const struct ew_mode *m, const struct parts *t,
                          double *jac)
{
    const double by_host = t->clock_is_least ? 1 : 1 / t->host.value / t->clock;
    jac[EW_TIME_LOADER] = 1;
    jac[EW_TIME_WORKERS] = -t->crowd.share;
    jac[EW_TIME_RESERVED] = t->x_is_least ? 0 : (1 - t->crowd.share) / t->x;
    jac[EW_TIME_CROWD] = t->crowd.by_power * (k->r - 1);
    jac[EW_TIME_CACHE] = t->cache / (1 + t->cache);
    jac[EW_TIME_SYSTEM] = t->clock_is_least ? 0 : k->cpu_pow / t->clock * k->system / m->cores;
    jac[EW_TIME_CPU_POW] = -log(t->clock);
    jac[EW_TIME_HOST_MEM] = t->host.share * k->cpu_pow * by_host;
}

/* The same of the total and both parts. */
static void derivatives(const struct coeffs *k, const struct ew_mode *m, const struct parts *t,
                        struct ew_time_slopes *s)
{
    const double step = t->step.value / t->total; /* share of the total */
    const double gpu = step * (1 - t->step.share), loader = step * t->step.share;
    const double launch = k->launch * t->host.value / t->total;
    *s = (struct ew_time_slopes){.total = {[EW_TIME_LAUNCH] = launch}};
    gpu_slopes(k, t, s->gpu);
    loader_slopes(k, m, t, s->loader);
    for (int j = 0; j < EW_TIME_PARAMS; j++)
        s->total[j] += gpu * s->gpu[j] + loader * s->loader[j];
    s->total[EW_TIME_OVERLAP] = step * t->step.by_power * (k->q - 1);
    s->total[EW_TIME_FIXED] = k->fixed / t->total;
    s->total[EW_TIME_HOST_MEM] += t->host.share * launch;
}

void ew_time_slopes(const double *theta, const struct ew_mode *m, struct ew_time_slopes *out)
{
    const struct coeffs k = coeffs(theta);
    const struct parts t = parts_at(&k, m);
    derivatives(&k, m, &t, out);
}

void ew_time_parts(const double *theta, const struct ew_mode *modes, int n,
                   struct ew_time_parts *out)
{
    const struct coeffs k = coeffs(theta);
    for (int i = 0; i < n; i++) {
        const struct parts t = parts_at(&k, &modes[i]);
        out[i] = (struct ew_time_parts){t.gpu.value, t.loader, t.total, t.step.share};
    }
}

void ew_time_law(const void *ctx, const double *theta, const struct ew_mode *modes, int n,
                 struct ew_law_point *out)
{
    const struct coeffs k = coeffs(theta);
    for (int i = 0; i < n; i++) {
        const struct parts t = parts_at(&k, &modes[i]);
        out[i].y = log(t.total);
        out[i].sigma = NOISE_GPU * (1 - t.step.share) + NOISE_LOADER * t.step.share;
        struct ew_time_slopes s;
        derivatives(&k, &modes[i], &t, &s);
        memcpy(out[i].jac, s.total, sizeof(s.total));
    }
}
