/* SPDX-License-Identifier: Apache-2.0 */
/* A synthetic board with layers, workers, voltage tables and quantised sensors. */
#include "layered_board.h"

#include <math.h>

#include "base/rng.h"

/* Uniform in [low, high], a function of seed and k. */
static double pick(unsigned seed, int k, double low, double high)
{
    return low + (high - low) * ew_rng_uniform(seed, 900, (uint64_t)k);
}

static double pick_log(unsigned seed, int k, double low, double high)
{
    return exp(pick(seed, k, log(low), log(high)));
}

/* The parts of a step. */
struct step {
    double total, gpu_busy, bytes, host, decode; /* seconds; bytes in seconds at 1 GHz */
};

/* Seconds to decode a sample, and to launch a layer; more processes than cores slow both. */
static void host_costs(const struct layered_workload *w, const struct ew_mode *m, int workers,
                       double *launch, double *decode)
{
    const unsigned s = w->seed;
    const double slow = w->kind == LAYERED_CPU ? 3 : 1;
    const double processes = 1 + (workers > 0 ? workers : 0);
    const double crowded =
        m->cores < processes ? 1 + pick(s, 5, 0.2, 0.7) * (processes / m->cores - 1) : 1;
    *launch = slow * pick_log(s, 3, 0.02, 0.12) / pow(m->cpu, pick(s, 6, 0.85, 1)) *
              (1 + pick(s, 7, 0, 0.12) / m->mem) * crowded;
    *decode = slow * pick_log(s, 11, 0.05, 0.9) * (1 + pick(s, 12, 0, 0.35) / m->mem) /
              pow(m->cpu, pick(s, 13, 0.8, 1));
}

/* The accelerator with its launches: each layer takes the maximum of arithmetic, memory and
 * launch. */
static double layers(const struct layered_workload *w, const struct ew_mode *m, int n,
                     double launch, struct step *out)
{
    const unsigned s = w->seed;
    const double intensity = w->kind == LAYERED_MEMORY ? 0.3 : pick_log(s, 2, 0.4, 3);
    const double reach = pick(s, 8, 2.2, 5) * m->gpu; /* a slow accelerator reaches less
                                                       * bandwidth */
    const double bandwidth = pow(pow(m->mem, -4) + pow(reach, -4), -0.25);
    const double update = pick_log(s, 10, 0.02, 0.2) * n;
    double sum = update / bandwidth;
    out->gpu_busy = sum;
    out->bytes = update;
    for (int i = 0; i < n; i++) {
        const double flops = exp(0.9 * ew_rng_normal(s, 901, (uint64_t)i));
        const double bytes = flops / intensity * exp(0.8 * ew_rng_normal(s, 902, (uint64_t)i));
        const double busy = fmax(flops / m->gpu, 1.6 * bytes / bandwidth);
        sum += fmax(busy, launch);
        out->gpu_busy += busy;
        out->bytes += bytes;
    }
    return sum;
}

static double knee(const struct layered_workload *w, const struct ew_mode *m)
{
    const double mem = m->mem / (0.35 * w->top.mem), cpu = m->cpu / (0.3 * w->top.cpu);
    if (w->kind != LAYERED_KNEE)
        return 1;
    return (1 + pick(w->seed, 18, 0.05, 0.3) * fmax(1 - mem, 0)) *
           (1 + pick(w->seed, 19, 0.05, 0.25) * fmax(1 - cpu, 0));
}

static struct step step_at(const struct layered_workload *w, const struct ew_mode *m)
{
    const unsigned s = w->seed;
    const int n = 8 + (int)pick(s, 1, 0, 40);
    const int workers = w->kind == LAYERED_INFER ? 0 : (int)pick(s, 4, 0, 8.99);
    struct step out;
    double launch;
    host_costs(w, m, workers, &launch, &out.decode);
    launch *= n / 15.0;
    out.decode *= n;
    out.host = launch * n;
    const double gpu = layers(w, m, n, launch, &out);
    const double at_once = pow(fmin(workers, fmax(m->cores - pick(s, 14, 0.2, 1), 0.4)), 0.9);
    const double loader = workers ? out.decode / at_once : 0.5 * out.decode;
    if (w->kind == LAYERED_INFER) {
        out.total = gpu;
        out.decode = 0;
    } else {
        out.total = workers ? fmax(gpu, loader) + 0.08 * fmin(gpu, loader) : gpu + loader;
    }
    out.total += pick_log(s, 16, 0.01, 0.1) * n / m->cpu + pick(s, 17, 0, 0.05) * n;
    out.total *= knee(w, m);
    return out;
}

/* Voltage relative to that of the highest clock: piecewise linear in five pieces of random slope,
 * in steps of 0.01. */
static double volts(double x, unsigned seed, int k)
{
    enum { PIECES = 5 };
    const double low = pick(seed, k, 0.55, 0.75);
    double slope[PIECES], sum = 0, v = low;
    for (int i = 0; i < PIECES; i++) {
        slope[i] = pow(pick(seed, k + 1 + i, 0, 1), 1.5) * (i ? i + 0.5 : 0.1);
        sum += slope[i];
    }
    for (int i = 0; i < PIECES; i++)
        v += (1 - low) * slope[i] / sum * fmax(0, fmin(1, PIECES * x - i));
    return round(100 * v) / 100;
}

/* Constants of the board and its voltages depend on its seed, those of the network on the
 * workload's. */
static double power_at(const struct layered_workload *w, const struct ew_mode *m,
                       const struct step *t)
{
    const unsigned s = w->seed, b = w->board_seed;
    const double xg = m->gpu / w->top.gpu, xc = m->cpu / w->top.cpu, xm = m->mem / w->top.mem;
    const double vg = volts(xg, b, 300), vc = volts(xc, b, 320), on = m->cores / w->top.cores;
    const double used = fmin(1, (t->host + t->decode) / t->total / m->cores);
    const double gpu = pick(s, 30, 9, 24) * vg * vg * xg *
                           (pick(b, 31, 0.1, 0.3) + 0.8 * fmin(1, t->gpu_busy / t->total)) +
                       pick(b, 32, 1, 2.5) * vg * vg * vg;
    const double cpu = pick(b, 33, 5, 14) * vc * vc * xc * on * (0.15 + 0.85 * used) +
                       pick(b, 34, 0.5, 2) * vc * vc * vc * (0.3 + 0.7 * on);
    const double mem = pick(b, 35, 1, 4) * xm +
                       pick(s, 36, 1, 6) * fmin(1, 1.6 * t->bytes / t->total / w->top.mem);
    const double sum = pick(b, 37, 6, 10) + gpu + cpu + mem;
    return 0.25 * sum * (1 + pick(b, 38, 0, 0.002) * sum);
}

void layered_truth(const struct layered_workload *w, const struct ew_mode *m, double *time,
                   double *power)
{
    const struct step t = step_at(w, m);
    *time = t.total * pick_log(w->seed, 20, 0.002, 20);
    *power = power_at(w, m, &t);
}

void layered_measure(const struct layered_workload *w, const struct ew_mode *m, int i, double *time,
                     double *power)
{
    const double least = 0.04; /* resolution of the sensor in watts */
    layered_truth(w, m, time, power);
    *time *= exp(pick(w->seed, 40, 0.006, 0.03) * ew_rng_normal(w->seed, 910, (uint64_t)i));
    *power *= exp(pick(w->seed, 41, 0.006, 0.025) * ew_rng_normal(w->seed, 911, (uint64_t)i));
    *power = fmax(least, round(*power / least) * least);
}
