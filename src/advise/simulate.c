/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated boards.
 *
 *   U = ((1/cpu)^a + (h/mem)^a)^(1/a)                           host work, per GHz
 *   G = ((gpu_s/gpu)^p + (mem_s/mem)^p)^(1/p)                   accelerator
 *   compute = (G^q + (host_s U (1 + k1/cores^2))^q)^(1/q)
 *   stall = stall_s U (1 + k2/cores^2), and what the workers do not hide
 *   power = base(clocks) + (gpu_j (1 + d x_gpu^e) + cpu_j x_cpu^2) / epoch
 *
 * Constants below are fitted to TRAIN's figure 9, modes a, c, e, g, i, k and m (17 of its 34
 * points); tests/advise/test_simulate.c holds the other half against it. */
#include "advise/simulate.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

#define HOST_SHARP   1.902 /* a */
#define HOST_MEM     0.5205
#define GPU_SHARP    1.851  /* p */
#define BOTH_SHARP   2.288  /* q */
#define HOST_CORES   2.939  /* k1 */
#define STALL_CORES  3.078  /* k2 */
#define GPU_RISE     0.7072 /* d */
#define GPU_POW      3.219  /* e */
#define WORKER_GAIN  0.6    /* w workers fetch as fast as w^0.6 (NX, 1 to 4 workers) */
#define WORKER_COST  0.88
#define WORKER_SHARP 6.0
#define NOISE        0.008 /* standard deviation of an epoch: 5.4.1, at most 1 % over 15 h */

static const struct ew_sim_work works[] = {
    {"lenet5", "MNIST", 2.637, 0.987, 40.13, 23.93, 0.2222, 54.40, 66.73, 9, 0, 60000, 16},
    {"resnet18", "CIFAR-10", 382.1, 315.9, 59.95, 22.96, 0.326, 4210, 610.2, 12, 0, 50000, 16},
    {"mobilenet_v3_large", "GLD-23k", 273.0, 303.4, 253.3, 23.50, 0.2064, 3531, 854.5, 272, 23080,
     23080, 16},
};

const struct ew_sim_work *ew_sim_work_at(int i)
{
    return i >= 0 && i < (int)EW_COUNT(works) ? &works[i] : NULL;
}

const struct ew_sim_work *ew_sim_work_find(const char *network)
{
    for (size_t i = 0; i < EW_COUNT(works); i++)
        if (strcmp(works[i].network, network) == 0)
            return &works[i];
    return NULL;
}

static double soft_max(double a, double b, double p)
{
    const double high = fmax(a, b);
    return high > 0 ? high * pow(pow(a / high, p) + pow(b / high, p), 1 / p) : 0;
}

/* A file's first byte, in seconds: TRAIN's 306, 485 and 741 s for 23,080 images by no worker. */
static double latency(enum ew_sim_medium m)
{
    static const double seconds[] = {0, 0.0015, 0.0092, 0.0203};
    return seconds[m];
}

static double base_power(const struct ew_profile *b, const struct ew_mode *m,
                         const struct ew_mode *top)
{
    const struct ew_profile_model *k = &b->model;
    const double xg = m->gpu / top->gpu, xc = m->cpu / top->cpu;
    return k->base_w + k->base_mem_w * m->mem / top->mem + k->base_gpu_w * xg * xg +
           k->base_cpu_w * xc * xc * (0.5 + m->cores / (2 * top->cores));
}

ew_err ew_simulate(const struct ew_profile *board, const struct ew_sim_work *w,
                   const struct ew_sim_setting *s, struct ew_sim_epoch *out)
{
    const struct ew_profile_model *k = &board->model;
    const struct ew_mode *m = &s->mode;
    const struct ew_mode top = {(double)board->cores, (double)board->cpu_mhz / 1000,
                                (double)board->gpu_mhz / 1000, (double)board->mem_mhz / 1000};
    EW_CHECK(k->gpu > 0, EW_ERR_UNSUPPORTED, "%s: its profile has no [model] to simulate",
             board->name);
    const double cores2 = m->cores * m->cores;
    const double host = soft_max(1 / m->cpu, HOST_MEM / m->mem, HOST_SHARP);
    const double gpu = soft_max(k->gpu * w->gpu_s / m->gpu, k->mem * w->mem_s / m->mem, GPU_SHARP);
    out->compute_s =
        soft_max(gpu, k->host * w->host_s * host * (1 + HOST_CORES / cores2), BOTH_SHARP);
    out->stall_s = k->stall * w->stall_s * host * (1 + STALL_CORES / cores2);
    double epoch = out->compute_s + out->stall_s * (1 + w->overhead);
    const double fetch = k->fetch * w->fetch_s + latency(s->medium) * (double)w->files;
    double waits = fetch;
    if (s->workers > 0)
        waits = soft_max(out->compute_s, WORKER_COST * fetch / pow(s->workers, WORKER_GAIN),
                         WORKER_SHARP) -
                out->compute_s;
    out->stall_s += waits;
    epoch += waits;
    if (s->seed)
        epoch *= exp(NOISE * ew_rng_normal(s->seed, 31, 0));
    const double xg = m->gpu / top.gpu, xc = m->cpu / top.cpu;
    out->epoch_s = epoch;
    out->base_w = base_power(board, m, &top);
    out->power_w = out->base_w + (k->gpu_energy * w->gpu_j * (1 + GPU_RISE * pow(xg, GPU_POW)) +
                                  k->cpu_energy * w->cpu_j * xc * xc) /
                                     epoch;
    out->energy_j = out->power_w * epoch;
    return EW_OK;
}
