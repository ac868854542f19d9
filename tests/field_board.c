/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic measurements as from real boards. */
#include "field_board.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

#define STAGES  6    /* of a network, each with its own arithmetic and traffic */
#define PASSES  4368 /* measurements until the order of modes repeats */
#define VOLTAGE 12   /* entries of a voltage table */

/* Uniform in [low, high], a function of seed and k. */
static double pick(unsigned seed, int k, double low, double high)
{
    return low + (high - low) * ew_rng_uniform(seed, 800, (uint64_t)k);
}

static double pick_log(unsigned seed, int k, double low, double high)
{
    return exp(pick(seed, k, log(low), log(high)));
}

static bool trains(const struct field_workload *w)
{
    return w->seed % 2 == 0;
}

/* Seconds of a step, and busy seconds within it. */
struct step {
    double total, gpu, cpu, traffic, loader; /* cpu: core-seconds; loader: its share, 0 to 1 */
};

/* ---- Time ------------------------------------------------------------------------------------ */

/* The accelerator: stages that are each bound by arithmetic or memory, with a smooth transition; at
 * low clocks, too few requests to use the full bandwidth. */
static double accelerator(unsigned s, const struct ew_mode *m, double *traffic)
{
    const double asked = pick(s, 1, 2.5, 7) * m->gpu;
    const double bandwidth = m->mem / cbrt(1 + pow(m->mem / asked, 3));
    const double weight = pick_log(s, 2, 0.3, 2), sharp = pick(s, 3, 1.5, 5);
    double sum = 0;
    for (int i = 0; i < STAGES; i++) {
        const double flops = pick_log(s, 10 + i, 0.4, 2.5) / STAGES;
        const double bytes = weight * pick_log(s, 20 + i, 0.4, 2.5) / STAGES;
        sum += pow(pow(flops / m->gpu, sharp) + pow(bytes / bandwidth, sharp), 1 / sharp);
        *traffic += bytes;
    }
    return sum;
}

/* Workers that decode, beside the main process and the system. */
static double load(unsigned s, const struct ew_mode *m, double *cpu)
{
    const double workers = 1 + floor(pick(s, 30, 0, 8)), own = pick(s, 31, 0.5, 1.5);
    const double cores = fmax(m->cores - own, 0.35 * m->cores), used = fmin(workers, cores);
    const double work = pick_log(s, 32, 0.4, 6) * pow(m->cpu, -pick(s, 33, 0.85, 1)) *
                        (1 + pick(s, 34, 0, 0.25) / m->mem);
    *cpu += work;
    return work / used * (1 + pick(s, 35, 0, 0.03) * used);
}

static struct step step_at(const struct field_workload *w, const struct ew_mode *m)
{
    const unsigned s = w->seed;
    struct step t = {.cpu = pick_log(s, 40, 0.05, trains(w) ? 0.4 : 0.8) / m->cpu};
    const double launch = t.cpu * (1 + pick(s, 41, 0, 0.15) / m->mem);
    t.gpu = accelerator(s, m, &t.traffic);
    const double fixed = pick(s, 42, 0, 0.06);
    if (!trains(w)) {
        const double sharp = pick(s, 43, 1.2, 6); /* how well launches overlap */
        t.total = pow(pow(t.gpu, sharp) + pow(launch, sharp), 1 / sharp) + fixed;
        return t;
    }
    const double loader = load(s, m, &t.cpu), sharp = pick(s, 44, 2, 7);
    t.total = pow(pow(t.gpu, sharp) + pow(loader, sharp), 1 / sharp) + launch + fixed;
    t.loader = loader / (loader + t.gpu);
    return t;
}

/* ---- Power ----------------------------------------------------------------------------------- */

/* A voltage table of VOLTAGE steps: constant, then increasingly steep. */
static double volts(unsigned b, int k, double x)
{
    const double least = pick(b, k, 0.55, 0.72), level = pick(b, k + 1, 0.15, 0.45);
    const double place = ceil(VOLTAGE * fmax(0, (x - level) / (1 - level)) - 1e-9) / VOLTAGE;
    return least + (1 - least) * pow(place, pick(b, k + 2, 0.9, 1.7));
}

static double watts(const struct field_workload *w, const struct ew_mode *m, const struct step *t)
{
    const unsigned s = w->seed, b = w->seed / 8; /* eight workloads per board */
    const double xg = m->gpu / w->top.gpu, xc = m->cpu / w->top.cpu, xm = m->mem / w->top.mem;
    const double vg = volts(b, 50, xg), vc = volts(b, 53, xc), on = m->cores / w->top.cores;
    const double used = fmin(1, t->cpu / t->total / m->cores);
    const double gpu = pick(s, 60, 9, 22) * vg * vg * xg *
                       (pick(b, 61, 0.1, 0.3) + 0.85 * fmin(1, t->gpu / t->total));
    const double cpu =
        pick(b, 62, 4, 11) * vc * vc * xc * (0.1 + on * (pick(b, 63, 0.1, 0.25) + used));
    const double mem =
        pick(b, 64, 1.5, 4) * xm + pick(s, 65, 1, 5) * fmin(1, t->traffic / t->total / m->mem) * xm;
    return pick(b, 66, 6, 11) + gpu + cpu + mem + 1.2 * vg * vg * vg + 0.8 * vc * on;
}

/* ---- Measuring ------------------------------------------------------------------------------- */

/* Student's t with four degrees of freedom, scaled to variance 1. */
static double heavy(unsigned s, uint64_t stream, int i)
{
    double sum = 0;
    for (int j = 0; j < 4; j++) {
        const double z = ew_rng_normal(s, stream + 1, (uint64_t)i * 4 + (uint64_t)j);
        sum += z * z / 4;
    }
    return ew_rng_normal(s, stream, (uint64_t)i) / sqrt(2 * sum);
}

/* Rounds the requested clocks to the board's steps of 12.75 and 9.6 MHz. */
static struct ew_mode stepped(const struct ew_mode *m)
{
    struct ew_mode r = *m;
    r.gpu = round(m->gpu / 0.01275) * 0.01275;
    r.cpu = round(m->cpu / 0.0096) * 0.0096;
    return r;
}

void field_measure(const struct field_workload *w, const struct ew_mode *m, int i, double *time,
                   double *power)
{
    const unsigned s = w->seed, b = w->seed / 8;
    const struct ew_mode runs = stepped(m);
    const struct step t = step_at(w, &runs);
    const double scale = w->top.cores > 8 ? 1 : 0.3;
    const double when = ew_rng_uniform(s, 820, (uint64_t)i) * PASSES; /* modes are measured in
                                                                       * random order */
    const double warm = sin(when / pick(s, 70, 60, 400)) * pick(s, 71, 0, 0.006);
    const double noise_t = pick(s, 72, 0.008, 0.014) + t.loader * pick(s, 73, 0.01, 0.035);
    const double noise_p = pick(s, 74, 0.008, 0.018) + t.loader * pick(s, 75, 0, 0.008);
    const bool throttled = ew_rng_uniform(s, 821, (uint64_t)i) < 0.008;
    const double slow = throttled ? pick(s, 76, 0.1, 0.5) : 0;
    double p = watts(w, &runs, &t) * scale;
    p *= exp(noise_p * heavy(s, 822, i) + warm - 0.5 * slow);
    p = p * pick(b, 77, 0.97, 1.03) + pick(b, 78, 0, 0.6); /* share and offset of the measured
                                                            * rail */
    const double least = pick(b, 79, 0.02, 0.1);
    *power = round(p / least) * least;
    *time = pick_log(s, 80, 0.01, 300) * t.total * exp(noise_t * heavy(s, 824, i) + warm + slow);
}
