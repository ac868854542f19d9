/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic workloads that the predictor was never tuned on. */
#include "blind_board.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

#define KERNELS 40
#define KNOTS   5 /* entries of a voltage table */

/* Uniform in [low, high], a function of seed and k. */
static double pick(unsigned seed, int k, double low, double high)
{
    return low + (high - low) * ew_rng_uniform(seed, 900, (uint64_t)k);
}

static double pick_log(unsigned seed, int k, double low, double high)
{
    return exp(pick(seed, k, log(low), log(high)));
}

/* Seconds of a step, and busy seconds within it. */
struct step {
    double total, gpu, cpu, mem; /* cpu: core-seconds */
};

/* ---- Time ------------------------------------------------------------------------------------ */

/* Each kernel takes the maximum of its arithmetic, its memory traffic and its launch. */
static struct step kernels(unsigned s, const struct ew_mode *m)
{
    const double launch = pick_log(s, 1, 0.1, 1.5) / KERNELS / pow(m->cpu, 0.9);
    const double traffic = pick_log(s, 2, 0.3, 3);
    struct step t = {.cpu = 0};
    for (int i = 0; i < KERNELS; i++) {
        const double flops = exp(1.2 * ew_rng_normal(s, 901, (uint64_t)i)) / KERNELS / 2;
        const double bytes = exp(0.8 * ew_rng_normal(s, 902, (uint64_t)i)) / KERNELS / 2;
        const double busy = fmax(flops / m->gpu, traffic * bytes / m->mem);
        t.gpu += busy;
        t.mem += bytes;
        t.cpu += launch;
        t.total += fmax(busy, launch);
    }
    return t;
}

/* Decoding, copying and computing in a pipeline: slightly slower than its slowest stage. */
static struct step pipeline(unsigned s, const struct ew_mode *m)
{
    const double sharp = pick(s, 3, 3, 8), serial = pick(s, 4, 0.05, 0.3);
    const double decode = pick_log(s, 5, 0.5, 5);
    struct step t = {.cpu = decode / m->cpu, .mem = pick_log(s, 6, 0.3, 2)};
    const double loader = t.cpu * (serial + (1 - serial) / m->cores);
    const double copy = t.mem / m->mem + pick(s, 7, 0, 0.1) / m->cpu;
    t.gpu = pick_log(s, 8, 0.3, 2) / m->gpu;
    t.total = pow(pow(loader, sharp) + pow(copy, sharp) + pow(t.gpu, sharp), 1 / sharp);
    t.total += pick(s, 9, 0.01, 0.1) / m->cpu + pick(s, 10, 0, 0.05);
    return t;
}

/* A small network: an interpreter on one core, with cache misses, feeds a mostly idle
 * accelerator. */
static struct step small(unsigned s, const struct ew_mode *m)
{
    const double work = pick_log(s, 11, 0.5, 2);
    struct step t = {.gpu = pick_log(s, 12, 0.02, 0.2) / m->gpu, .mem = 0.05};
    t.cpu = work / m->cpu + work * pick(s, 13, 0.05, 0.4) / pow(m->mem, 0.7);
    t.cpu *= 1 + pick(s, 14, 0, 0.4) / m->cores;
    t.total = t.cpu + pick(s, 15, 0.3, 1) * t.gpu + pick(s, 16, 0, 0.03);
    return t;
}

/* Workers, main process and system slow each other down on too few cores. */
static struct step loader(unsigned s, const struct ew_mode *m)
{
    const double workers = 2 + floor(pick(s, 17, 0, 7)), threads = workers + 1.3;
    const double share = fmin(1, m->cores / threads);
    const double crowd = 1 + pick(s, 18, 0, 0.03) * fmax(0, threads - m->cores);
    const double clock = 1 / pow(m->cpu, pick(s, 19, 0.8, 1));
    struct step t = {.cpu = pick_log(s, 20, 1, 8) * clock, .mem = pick(s, 21, 0.3, 1)};
    t.gpu = pick_log(s, 22, 0.3, 1.5) * fmax(1 / m->gpu, pick(s, 23, 0.3, 2) / m->mem);
    const double fetch = t.cpu * crowd / (workers * share) * (1 + pick(s, 24, 0, 0.2) / m->mem);
    const double main = t.gpu + pick_log(s, 25, 0.05, 0.3) * clock / share;
    t.total = fmax(fetch, main) + 0.1 * fmin(fetch, main);
    return t;
}

static struct step step_at(unsigned s, const struct ew_mode *m)
{
    switch ((enum blind_kind)(s % BLIND_KINDS)) {
    case BLIND_KERNELS:
        return kernels(s, m);
    case BLIND_PIPELINE:
        return pipeline(s, m);
    case BLIND_SMALL:
        return small(s, m);
    default:
        return loader(s, m);
    }
}

/* ---- Power ----------------------------------------------------------------------------------- */

/* Voltage relative to the highest at fraction x of the highest clock; piecewise linear. */
static double volts(unsigned s, int k, double x)
{
    double at[KNOTS];
    at[0] = pick(s, k, 0.5, 0.75);
    for (int i = 1; i < KNOTS; i++)
        at[i] = at[i - 1] + pick(s, k + i, 0, 1) * (1 - at[i - 1]) * i / (KNOTS - 1);
    const double place = fmin(x, 0.999) * (KNOTS - 1);
    const int i = (int)place;
    return (at[i] + (place - i) * (at[i + 1] - at[i])) / at[KNOTS - 1];
}

static double watts(const struct blind_workload *w, const struct ew_mode *m, const struct step *t)
{
    const unsigned s = w->seed;
    const double xg = m->gpu / w->top.gpu, xc = m->cpu / w->top.cpu, xm = m->mem / w->top.mem;
    const double vg = volts(s, 30, xg), vc = volts(s, 40, xc);
    const double busy = fmin(1, t->cpu / t->total / m->cores), on = m->cores / w->top.cores;
    const double gpu =
        pick(s, 50, 8, 24) * vg * vg * xg * (pick(s, 51, 0.1, 0.4) + fmin(1, t->gpu / t->total));
    const double cpu = pick(s, 52, 4, 12) * vc * vc * xc * on * (pick(s, 53, 0.05, 0.3) + busy);
    const double mem = pick(s, 54, 1, 4) * pow(xm, pick(s, 55, 0.7, 1.2)) +
                       pick(s, 56, 1, 6) * fmin(1, t->mem / t->total / m->mem) * xm;
    const double still = pick(s, 57, 5, 11) + pick(s, 58, 0.5, 2) * (vg * vg * vg + on * vc);
    const double sum = still + gpu + cpu + mem;
    return sum * (1 + pick(s, 59, 0, 0.004) * (sum - 15));
}

/* ---- Measuring ------------------------------------------------------------------------------- */

/* Every third board lowers its accelerator's clock to stay within a power budget. */
static void hold_budget(const struct blind_workload *w, struct ew_mode *m, struct step *t)
{
    const struct step most = step_at(w->seed, &w->top);
    const double budget = pick(w->seed, 60, 0.85, 1) * watts(w, &w->top, &most);
    for (int i = 0; i < 8 && w->seed % 3 == 0 && watts(w, m, t) > budget; i++) {
        m->gpu *= 0.96;
        *t = step_at(w->seed, m);
    }
}

static double noise(unsigned s, uint64_t stream, int i)
{
    const double a = ew_rng_normal(s, stream, (uint64_t)i);
    const double size = pick_log(s, 61, 0.002, 0.04);
    const bool heavy = s / BLIND_KINDS % 2;
    return size * (heavy && i % 7 == 0 ? 2.5 * a : a);
}

void blind_measure(const struct blind_workload *w, const struct ew_mode *m, int i, double *time,
                   double *power)
{
    const unsigned s = w->seed;
    struct ew_mode runs = *m;
    struct step t = step_at(s, m);
    hold_budget(w, &runs, &t);
    const double scale = w->top.cores > 8 ? 1 : 0.3;
    const bool throttled = s % 5 == 0 && ew_rng_uniform(s, 903, (uint64_t)i) < 0.02;
    *time = pick_log(s, 62, 0.01, 300) * t.total * exp(noise(s, 904, i)) * (throttled ? 1.3 : 1);
    *power = scale * watts(w, &runs, &t) * exp(0.7 * noise(s, 905, i)) * (throttled ? 0.85 : 1);
}
