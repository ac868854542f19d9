/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic workloads composed of forms. */
#include "composed_board.h"

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"

#define LAYERS 24

/* Uniform in [low, high], a function of seed and k. */
static double pick(unsigned seed, int k, double low, double high)
{
    return low + (high - low) * ew_rng_uniform(seed, 700, (uint64_t)k);
}

static double pick_log(unsigned seed, int k, double low, double high)
{
    return exp(pick(seed, k, log(low), log(high)));
}

/* A p-norm: power 1 adds, large powers approach the maximum. */
static double soft(double a, double b, double power)
{
    return pow(pow(a, power) + pow(b, power), 1 / power);
}

/* The parts of a step, in seconds. */
struct step {
    double gpu, launch, loader; /* each without the others */
    double total;
    double cpu_busy; /* core-seconds */
    double bytes;    /* seconds at a memory clock of 1 GHz */
};

/* ---- Accelerator ----------------------------------------------------------------------------- */

typedef double gpu_form(unsigned s, const struct ew_mode *m);

/* Each layer is bound by arithmetic or by memory; a slow accelerator reaches less bandwidth. */
static double gpu_layers(unsigned s, const struct ew_mode *m)
{
    const double bandwidth = fmin(m->mem, pick(s, 1, 2, 6) * m->gpu);
    const double intensity = pick_log(s, 2, 0.4, 4);
    double sum = 0;
    for (int i = 0; i < LAYERS; i++) {
        const double flops = exp(ew_rng_normal(s, 701, (uint64_t)i)) / LAYERS;
        const double bytes = flops / intensity * exp(ew_rng_normal(s, 702, (uint64_t)i));
        sum += fmax(flops / m->gpu, 1.8 * bytes / bandwidth);
    }
    return sum;
}

/* No overlap. */
static double gpu_added(unsigned s, const struct ew_mode *m)
{
    return 1 / m->gpu + pick_log(s, 3, 0.2, 2.5) / m->mem;
}

/* Memory bandwidth that saturates with the request rate, and constant gaps between kernels. */
static double gpu_saturating(unsigned s, const struct ew_mode *m)
{
    const double asked = pick(s, 4, 1.2, 4) * m->gpu;
    const double bandwidth = m->mem * (1 - exp(-asked / m->mem));
    return 0.7 / m->gpu + pick_log(s, 5, 0.2, 2) / bandwidth + pick(s, 6, 0, 0.06);
}

/* Latency plus bandwidth, and diminishing returns of high clocks. */
static double gpu_latency(unsigned s, const struct ew_mode *m)
{
    const double arithmetic = 1 / pow(m->gpu, pick(s, 7, 0.85, 1));
    const double memory = pick_log(s, 8, 0.3, 3) / m->mem + pick(s, 9, 0, 0.25) / sqrt(m->mem);
    return soft(arithmetic, memory, pick(s, 10, 1.3, 6));
}

/* ---- Host ------------------------------------------------------------------------------------ */

typedef void host_form(unsigned s, const struct ew_mode *m, struct step *t);

/* Workers on the cores that the main process leaves free. */
static void host_workers(unsigned s, const struct ew_mode *m, struct step *t)
{
    const double workers = 1 + floor(pick(s, 20, 0, 6));
    const double cores = fmin(workers, fmax(m->cores - pick(s, 21, 0.3, 1), 0.5));
    const double work = pick_log(s, 22, 0.3, 5) * (1 + pick(s, 23, 0.05, 0.3) / m->mem);
    t->loader = work / cores / pow(m->cpu, pick(s, 24, 0.85, 1));
    t->launch = pick_log(s, 25, 0.05, 0.4) / m->cpu;
    t->cpu_busy = work / m->cpu + t->launch;
}

/* Contention and coherence between cores (Gunther's universal scalability law). */
static void host_contended(unsigned s, const struct ew_mode *m, struct step *t)
{
    const double n = m->cores, wait = pick(s, 26, 0.03, 0.3), talk = pick(s, 27, 0, 0.01);
    const double work = pick_log(s, 22, 0.3, 6) / pow(m->cpu, pick(s, 24, 0.8, 1));
    t->loader = work * (1 + wait * (n - 1) + talk * n * (n - 1)) / n;
    t->launch = pick_log(s, 25, 0.05, 0.4) / m->cpu * (1 + pick(s, 28, 0, 0.2) / m->mem);
    t->cpu_busy = work + t->launch;
}

/* Inference: launches only, slightly slower if one core does everything. */
static void host_launches(unsigned s, const struct ew_mode *m, struct step *t)
{
    t->loader = 0;
    t->launch = pick_log(s, 25, 0.1, 1.2) / pow(m->cpu, pick(s, 29, 0.85, 1)) *
                (1 + pick(s, 30, 0, 0.5) / (m->cores * m->cores)) *
                (1 + pick(s, 31, 0, 0.2) / m->mem);
    t->cpu_busy = t->launch;
}

/* Main process and four workers share all cores; clusters of four cores share a cache; files come
 * from a disk whose speed no clock changes. */
static void host_shared(unsigned s, const struct ew_mode *m, struct step *t)
{
    const double clusters = ceil(m->cores / 4), slow = 1 + pick(s, 32, 0, 0.06) * (clusters - 1);
    const double decode = pick_log(s, 22, 0.4, 5) * slow / pow(m->cpu, pick(s, 24, 0.9, 1));
    t->launch = pick_log(s, 25, 0.05, 0.5) * slow / m->cpu;
    t->cpu_busy = decode + t->launch;
    t->loader = fmax(decode / fmin(4, m->cores), t->cpu_busy / m->cores);
    t->loader = fmax(t->loader, pick(s, 33, 0, 0.15));
}

/* ---- Overlap --------------------------------------------------------------------------------- */

typedef double overlap_form(unsigned s, const struct step *t);

static double overlap_pipe(unsigned s, const struct step *t)
{
    const double part = pick(s, 40, 0.02, 0.15) * fmin(t->gpu, t->loader);
    return fmax(t->gpu, t->loader) + part + t->launch + pick(s, 41, 0, 0.08);
}

static double overlap_soft(unsigned s, const struct step *t)
{
    return soft(t->gpu, t->loader, pick(s, 42, 2, 9)) + t->launch;
}

/* Launches overlap with the accelerator; the loader's stalls do not. */
static double overlap_stall(unsigned s, const struct step *t)
{
    const double compute = soft(t->gpu, t->launch, pick(s, 43, 3, 12));
    return compute + 1.05 * fmax(0, t->loader - compute) + pick(s, 41, 0, 0.08);
}

/* The main process loads the data itself, then computes: no overlap. */
static double overlap_none(unsigned s, const struct step *t)
{
    return t->gpu + t->launch + pick(s, 44, 0.3, 1) * t->loader + pick(s, 41, 0, 0.05);
}

/* ---- Power ----------------------------------------------------------------------------------- */

/* Voltage relative to the highest: constant up to a knee, then in steps. */
static double stepped(unsigned b, int k, double x)
{
    const double low = pick(b, k, 0.55, 0.75), knee = pick(b, k + 1, 0.25, 0.55);
    const double v = x < knee ? low : low + (1 - low) * (x - knee) / (1 - knee);
    return ceil(40 * v) / 40;
}

static double bent(unsigned b, int k, double x)
{
    const double low = pick(b, k, 0.55, 0.75), bend = pick(b, k + 1, 0, 0.8);
    return low + (1 - low) * ((1 - bend) * x + bend * x * x);
}

struct shares {
    double xg, xc, xm, on; /* relative to the highest clocks and core count */
    double gpu, cpu, mem;  /* utilisation */
};

typedef double power_form(unsigned s, unsigned b, const struct shares *x);

static double power_stepped(unsigned s, unsigned b, const struct shares *x)
{
    const double vg = stepped(b, 60, x->xg), vc = stepped(b, 62, x->xc);
    const double gpu = pick(s, 64, 8, 25) * vg * vg * x->xg * (pick(b, 65, 0.1, 0.35) + x->gpu);
    const double cpu = pick(b, 66, 4, 12) * vc * vc * x->xc * x->on * (0.2 + x->cpu);
    return pick(b, 67, 5, 11) + gpu + cpu + pick(b, 68, 1, 4) * x->xm + pick(s, 69, 1, 6) * x->mem +
           2 * vg * vg + vc * x->on;
}

static double power_leaking(unsigned s, unsigned b, const struct shares *x)
{
    const double vg = bent(b, 60, x->xg), vc = bent(b, 62, x->xc);
    const double sum = pick(b, 67, 5, 11) + pick(s, 64, 6, 20) * vg * vg * x->xg * (0.2 + x->gpu) +
                       pick(b, 66, 3, 10) * vc * vc * x->xc * x->on * (0.3 + x->cpu) +
                       pick(b, 68, 2, 5) * x->xm + pick(b, 70, 1, 4) * vg * vg * vg;
    return sum * (1 + pick(b, 71, 0, 0.003) * sum);
}

/* Power-gated clusters of cores, memory power by traffic, converter losses. */
static double power_clusters(unsigned s, unsigned b, const struct shares *x)
{
    const double vg = bent(b, 60, x->xg), vc = stepped(b, 62, x->xc);
    const double clusters = ceil(3 * x->on) / 3;
    const double gpu = pick(s, 64, 8, 25) * vg * vg * x->xg * (0.1 + 0.9 * x->gpu);
    const double cpu = pick(b, 66, 4, 12) * vc * vc * x->xc * (0.1 * x->on + x->cpu * x->on);
    const double mem = pick(b, 68, 1, 3) * sqrt(x->xm) + pick(s, 69, 2, 8) * x->mem;
    const double sum = pick(b, 67, 5, 9) + gpu + cpu + mem + pick(b, 72, 0.5, 2) * vc * clusters;
    return sum / (0.92 - pick(b, 73, 0, 0.06) * 10 / (10 + sum));
}

/* A memory controller with three voltage levels, and fans. */
static double power_levels(unsigned s, unsigned b, const struct shares *x)
{
    const double vg = stepped(b, 60, x->xg), vc = bent(b, 62, x->xc);
    const double vm = x->xm < 0.3 ? 0.75 : x->xm < 0.8 ? 0.85 : 1;
    const double gpu = pick(s, 64, 6, 22) * vg * vg * x->xg * (0.25 + 0.75 * x->gpu);
    const double cpu = pick(b, 66, 3, 9) * vc * vc * x->xc * (0.3 * x->on + 0.7 * x->cpu * x->on);
    const double mem = pick(b, 68, 2, 6) * vm * vm * x->xm + pick(s, 69, 0.5, 4) * x->mem;
    const double sum = pick(b, 67, 5, 11) + gpu + cpu + mem;
    return sum + pick(b, 74, 0, 0.05) * fmax(0, sum - 20);
}

/* ---- Measuring ------------------------------------------------------------------------------- */

static const struct forms {
    gpu_form *gpu[2];
    host_form *host[2];
    overlap_form *overlap[2];
    power_form *power[2];
} halves[] = {
    [COMPOSED_SEEN] = {{gpu_layers, gpu_added},
                       {host_workers, host_contended},
                       {overlap_pipe, overlap_soft},
                       {power_stepped, power_leaking}},
    [COMPOSED_HELD_BACK] = {{gpu_saturating, gpu_latency},
                            {host_launches, host_shared},
                            {overlap_stall, overlap_none},
                            {power_clusters, power_levels}},
};

static struct step step_at(const struct composed_workload *w, const struct ew_mode *m)
{
    const struct forms *f = &halves[w->half];
    const unsigned s = w->seed;
    struct step t;
    t.gpu = f->gpu[s & 1](s, m);
    f->host[s >> 1 & 1](s, m, &t);
    t.total = f->overlap[s >> 2 & 1](s, &t);
    t.bytes = pick_log(s, 11, 0.3, 1.5);
    return t;
}

/* First half of the forms: the same everywhere, or larger if loader-bound, with heavy tails.
 * Second half: drift over the runs, or throttled runs. */
static double noise(const struct composed_workload *w, const struct step *t, int i)
{
    const unsigned s = w->seed;
    const double size = pick(s, 80, 0.008, 0.028), a = ew_rng_normal(s, 710, (uint64_t)i);
    const double loader = t->loader / (t->gpu + t->loader);
    const bool odd = s >> 3 & 1;
    if (w->half == COMPOSED_SEEN)
        return odd ? a * (0.01 + 0.03 * loader) * (i % 9 ? 1 : 2) : a * size;
    if (odd)
        return 0.7 * size * (a + sin(0.37 * i + s));
    return a * size + (ew_rng_uniform(s, 711, (uint64_t)i) < 0.01 ? 0.3 : 0);
}

void composed_measure(const struct composed_workload *w, const struct ew_mode *m, int i,
                      double *time, double *power)
{
    const struct step t = step_at(w, m);
    const unsigned s = w->seed;
    const struct shares x = {.xg = m->gpu / w->top.gpu,
                             .xc = m->cpu / w->top.cpu,
                             .xm = m->mem / w->top.mem,
                             .on = m->cores / w->top.cores,
                             .gpu = fmin(1, t.gpu / t.total),
                             .cpu = fmin(1, t.cpu_busy / t.total / m->cores),
                             .mem = fmin(1, t.bytes / t.total / w->top.mem)};
    const double scale = w->top.cores > 8 ? 1 : 0.3;
    *time = pick_log(s, 81, 0.01, 300) * t.total * exp(noise(w, &t, i));
    *power = scale * halves[w->half].power[s >> 3 & 1](s, w->board_seed, &x) *
             exp(pick(s, 82, 0.008, 0.025) * ew_rng_normal(s, 712, (uint64_t)i));
    *power = round(*power / 0.02) * 0.02;
}
