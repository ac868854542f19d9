/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic boards: modes, laws, noise. */
#include "synthetic_boards.h"

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"

/* ---- Modes ----------------------------------------------------------------------------------- */

struct grid {
    int cores_from, cores_step, n_cores;
    double cpu_from, cpu_step;
    int n_cpu;
    double gpu[16];
    int n_gpu;
    double mem[12];
    int n_mem;
};

static const struct grid grids[SYNTHETIC_BOARDS] = {
    [SYNTHETIC_ORIN] = {2,
                        2,
                        6,
                        0.2688,
                        0.1487,
                        14,
                        {0.115, 0.217, 0.319, 0.421, 0.523, 0.625, 0.727, 0.829, 0.931, 1.033,
                         1.135, 1.237, 1.3005},
                        13,
                        {0.204, 0.6656, 2.133, 3.199},
                        4},
    [SYNTHETIC_ORIN_NANO] =
        {1, 1, 6, 0.2688, 0.1242, 11, {0.306, 0.408, 0.51, 0.62475}, 4, {0.6656, 2.133}, 2},
    [SYNTHETIC_XAVIER] = {1,
                          1,
                          8,
                          0.1152,
                          0.0768,
                          29,
                          {0.115, 0.217, 0.319, 0.421, 0.523, 0.625, 0.676, 0.829, 0.905, 1.033,
                           1.198, 1.237, 1.339, 1.377},
                          14,
                          {0.204, 0.408, 0.6, 0.6656, 0.8, 1.0656, 1.3312, 1.866, 2.133},
                          9},
};

int synthetic_modes(enum synthetic_board b, struct ew_mode *out)
{
    const struct grid *g = &grids[b];
    int n = 0;
    for (int c = 0; c < g->n_cores; c++)
        for (int f = 0; f < g->n_cpu; f++)
            for (int u = 0; u < g->n_gpu; u++)
                for (int m = 0; m < g->n_mem; m++)
                    out[n++] =
                        (struct ew_mode){g->cores_from + c * g->cores_step,
                                         g->cpu_from + f * g->cpu_step, g->gpu[u], g->mem[m]};
    return n;
}

static struct ew_mode top_mode(enum synthetic_board b)
{
    const struct grid *g = &grids[b];
    return (struct ew_mode){g->cores_from + (g->n_cores - 1) * g->cores_step,
                            g->cpu_from + (g->n_cpu - 1) * g->cpu_step, g->gpu[g->n_gpu - 1],
                            g->mem[g->n_mem - 1]};
}

/* ---- Parameters ------------------------------------------------------------------------------ */

/* Uniform in [low, high], a function of workload and k. */
static double pick(const struct synthetic_workload *w, int k, double low, double high)
{
    return low + (high - low) * ew_rng_uniform(w->seed, 100 + (uint64_t)w->law, (uint64_t)k);
}

/* Log-uniform in [low, high]. */
static double pick_log(const struct synthetic_workload *w, int k, double low, double high)
{
    return exp(pick(w, k, log(low), log(high)));
}

/* ---- Time ------------------------------------------------------------------------------------ */

static double time_same(const struct synthetic_workload *w, const struct ew_mode *m)
{
    double theta[EW_TIME_PARAMS];
    struct ew_time_parts t;
    for (int j = 0; j < EW_TIME_PARAMS; j++)
        theta[j] =
            ew_time_prior.mean[j] + ew_time_prior.sd[j] * ew_rng_normal(w->seed, 55, (uint64_t)j);
    ew_time_parts(theta, m, 1, &t);
    return t.total;
}

static double time_added(const struct synthetic_workload *w, const struct ew_mode *m)
{
    const double loader = pick_log(w, 3, 0.3, 3) / fmin(m->cores, pick(w, 4, 2, 6));
    return pick_log(w, 1, 0.5, 3) / m->gpu + pick_log(w, 2, 0.5, 2) / m->mem + loader / m->cpu +
           pick_log(w, 5, 0.05, 0.4) / m->cpu + pick(w, 6, 0, 0.2);
}

static double time_roofline(const struct synthetic_workload *w, const struct ew_mode *m)
{
    const double gpu = fmax(pick_log(w, 1, 0.5, 3) / m->gpu, pick_log(w, 2, 1, 5) / m->mem);
    const double loader = pick_log(w, 3, 0.5, 6) / fmin(m->cores, 4) /
                          pow(m->cpu, pick(w, 4, 0.75, 1)) * (1 + 0.1 / m->mem);
    return fmax(gpu, loader) + pick_log(w, 5, 0.05, 0.3) / m->cpu;
}

/* As published measurements of epochs suggest: host work bound by CPU or memory clock. */
static double time_train(const struct synthetic_workload *w, const struct ew_mode *m)
{
    const double u = pow(pow(1 / m->cpu, 2.61) + pow(0.658 / m->mem, 2.61), 1 / 2.61);
    const double gpu =
        pow(pow(pick_log(w, 1, 0.1, 4) / m->gpu, 2.43) + pow(pick_log(w, 2, 0.1, 4) / m->mem, 2.43),
            1 / 2.43);
    const double host = pick_log(w, 3, 0.2, 3) * u * (1 + 2.16 / (m->cores * m->cores));
    const double compute = pow(pow(gpu, 2.32) + pow(host, 2.32), 1 / 2.32);
    return compute + pick_log(w, 4, 0.05, 0.8) * u * (1 + 4.27 / (m->cores * m->cores));
}

static double time_amdahl(const struct synthetic_workload *w, const struct ew_mode *m)
{
    const double gpu = pick_log(w, 1, 0.5, 3) / pow(m->gpu, pick(w, 2, 0.8, 0.98)) +
                       pick_log(w, 3, 0.2, 1.2) / pow(m->mem, pick(w, 4, 0.6, 0.95));
    const double loader = pick_log(w, 5, 1, 6) *
                          (pick(w, 6, 0.1, 0.35) + 1 / m->cores + 0.01 * m->cores) /
                          pow(m->cpu, pick(w, 7, 0.8, 1));
    const double q = pick(w, 8, 2, 8);
    return pow(pow(gpu, q) + pow(loader, q), 1 / q) * (1 + pick(w, 9, 0, 0.1) / m->mem);
}

static double time_infer(const struct synthetic_workload *w, const struct ew_mode *m)
{
    const double gpu = pick_log(w, 1, 0.3, 2) / m->gpu + pick_log(w, 2, 0.2, 1.5) / m->mem;
    const double launch = pick_log(w, 3, 0.1, 1) / m->cpu * (1 + pick(w, 4, 0, 0.6) / m->cores);
    return pow(pow(gpu, 4) + pow(launch, 4), 0.25) + pick(w, 5, 0, 0.1);
}

static double true_time(const struct synthetic_workload *w, const struct ew_mode *m)
{
    switch (w->law) {
    case SYNTHETIC_SAME:
        return time_same(w, m);
    case SYNTHETIC_ADDED:
        return time_added(w, m);
    case SYNTHETIC_ROOFLINE:
        return time_roofline(w, m);
    case SYNTHETIC_TRAIN:
        return time_train(w, m);
    case SYNTHETIC_AMDAHL:
        return time_amdahl(w, m);
    default:
        return time_infer(w, m);
    }
}

/* ---- Power ----------------------------------------------------------------------------------- */

/* Voltage relative to the highest: constant below a knee, then rising. */
static double volts(double x, double floor, double knee)
{
    return x <= knee ? floor : floor + (1 - floor) * pow((x - knee) / (1 - knee), 1.2);
}

/* C V^2 f per power domain, times utilisation; leakage depends on voltage and rises with
 * temperature. */
static double power_domains(const struct synthetic_workload *w, const struct ew_mode *m,
                            double time)
{
    const struct ew_mode top = top_mode(w->board);
    const double board = w->board == SYNTHETIC_ORIN_NANO ? 0.25 : 1;
    const double xg = m->gpu / top.gpu, xc = m->cpu / top.cpu, xm = m->mem / top.mem;
    const double vg = volts(xg, pick(w, 21, 0.6, 0.75), pick(w, 22, 0.25, 0.45));
    const double vc = volts(xc, pick(w, 23, 0.6, 0.75), pick(w, 24, 0.25, 0.45));
    const double rate = fmin(true_time(w, &top) / time, 1.0);
    const double busy = fmin(1, rate / xg);
    const double gpu = pick(w, 25, 8, 22) * vg * vg * xg * (0.15 + 0.85 * busy);
    const double cpu = pick(w, 26, 2, 7) * vc * vc * xc * (0.2 + 0.8 * m->cores / top.cores);
    const double mem = pick(w, 27, 2, 4) * xm + pick(w, 28, 2, 8) * rate;
    const double still = 8 + 1.5 * vg + vc * m->cores / top.cores;
    const double sum = still + gpu + cpu + mem;
    return board * sum * (1 + pick(w, 29, 0, 0.003) * sum);
}

static double power_train(const struct synthetic_workload *w, const struct ew_mode *m, double time)
{
    const struct ew_mode top = top_mode(w->board);
    const double xg = m->gpu / top.gpu, xc = m->cpu / top.cpu;
    const double base = 2.06 + 4.04 * m->mem / top.mem + 0.63 * xg * xg +
                        0.77 * xc * xc * (0.5 + m->cores / (2 * top.cores));
    const double joules =
        pick(w, 25, 5, 20) * (1 + 0.62 * pow(xg, 4.75)) + pick(w, 26, 0.5, 4) * xc * xc;
    return base + joules * true_time(w, &top) / time;
}

void synthetic_truth(const struct synthetic_workload *w, const struct ew_mode *m, double *time,
                     double *power)
{
    *time = true_time(w, m);
    *power = w->law == SYNTHETIC_TRAIN ? power_train(w, m, *time) : power_domains(w, m, *time);
    *time *= pick_log(w, 40, 0.05, 200); /* unit: a step up to an epoch */
}

void synthetic_measure(const struct synthetic_workload *w, const struct ew_mode *m, int i,
                       double *time, double *power)
{
    synthetic_truth(w, m, time, power);
    *time *= exp(pick(w, 41, 0.008, 0.03) * ew_rng_normal(w->seed, 201, (uint64_t)i));
    *power *= exp(pick(w, 42, 0.008, 0.022) * ew_rng_normal(w->seed, 202, (uint64_t)i));
    if (ew_rng_uniform(w->seed, 203, (uint64_t)i) < w->throttled) {
        *time *= 1.4;
        *power *= 0.8;
    }
}
