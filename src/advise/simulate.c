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
#define POWER_NOISE  0.010 /* of its power: 5.4.3, an AGX's energies within 5.9 %: six of them */

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

/* ---- From a plan ----------------------------------------------------------------------------- */

/* Fitted: `train` to the compute times of figure 9 of TRAIN in modes a, c, e, g, i, k and m (three
 * networks), `engine` and `eager` to every second row of ENGINE's Table 1 (AlexNet, ResNet-50,
 * DenseNet-121, MobileNetV2 on a Nano), the arithmetic of `engine` being that of `train`.  ENGINE
 * times calls from Python, 73 ms each; `native` is its arithmetic and bytes alone, at 12 us a
 * launch, which is assumed: nothing published tells it. */
static const struct software {
    double reach;       /* share of the peak of arithmetic */
    double reach_bytes; /* of the memory's bandwidth */
    double launch_s;    /* of a kernel, at 1 GHz of an AGX Xavier's core */
    double call_s;      /* of a run */
    double group_s;     /* times the root of the groups of a convolution, at 1 GHz of its GPU */
    bool products_only; /* other steps are fused into convolutions and matrix products */
} softwares[EW_SIM_SOFTWARES] = {
    [EW_SIM_NATIVE] = {0.386, 0.5, 1.2e-5, 5e-5, 0, true},
    [EW_SIM_TRAIN] = {0.386, 0.368, 1.767e-4, 1e-5, 2.62e-4, false},
    [EW_SIM_ENGINE] = {0.386, 0.5, 1.593e-3, 7.32e-2, 1.586e-4, true},
    [EW_SIM_EAGER] = {0.0512, 0.368, 7.44e-4, 0.487, 3.52e-3, false},
};

#define FLOPS_PER_CLOCK 1024.0    /* 512 CUDA cores, a multiply-add each */
#define BYTES_PER_CLOCK 64.0      /* 256 bits, twice a clock */
#define FLOP_J          1.78e-11  /* of TRAIN's three networks, as their gpu_j below */
#define BYTE_J          1.255e-10 /* of a byte that is moved, which reach_bytes stands for */
#define LAUNCH_W        1.06      /* while kernels are launched */
#define LAUNCH_CPU_W    2.2
#define STALL_S         6.4e-3 /* copying a batch: of LeNet's, and with its size MobileNet's */
#define STALL_BYTE_S    1e-9
#define STALL_OVERHEAD  0.25

void ew_sim_work_of(const struct ew_sim_load *l, enum ew_sim_software software,
                    struct ew_sim_work *out)
{
    const struct software *s = &softwares[software];
    const int kernels = s->products_only ? l->products : l->n;
    const double launch_s = s->launch_s * kernels;
    *out = (struct ew_sim_work){
        .network = "",
        .data = "",
        .gpu_s = l->flops / (1e9 * FLOPS_PER_CLOCK * s->reach) + s->group_s * l->root_groups,
        .mem_s = l->bytes / (1e9 * BYTES_PER_CLOCK * s->reach_bytes),
        .host_s = launch_s + s->call_s,
        .gpu_j = FLOP_J * l->flops + BYTE_J * l->bytes / s->reach_bytes + LAUNCH_W * launch_s,
        .cpu_j = LAUNCH_CPU_W * launch_s,
        .samples = l->batch,
        .batch = l->batch,
    };
    if (l->train) {
        out->stall_s = STALL_S + STALL_BYTE_S * l->input_bytes;
        out->overhead = STALL_OVERHEAD;
    }
}

void ew_sim_work_times(struct ew_sim_work *w, double n)
{
    double *const amounts[] = {&w->gpu_s, &w->mem_s, &w->host_s, &w->stall_s,
                               &w->gpu_j, &w->cpu_j, &w->fetch_s};
    for (size_t i = 0; i < EW_COUNT(amounts); i++)
        *amounts[i] *= n;
    w->samples = (int64_t)((double)w->samples * n);
}

/* ---- The model ------------------------------------------------------------------------------- */

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

struct ew_mode ew_sim_top(const struct ew_profile *b)
{
    struct ew_mode top = {(double)b->cores, (double)b->cpu_mhz / 1000, (double)b->gpu_mhz / 1000,
                          (double)b->mem_mhz / 1000};
    if (!b->gpu_mhz)
        top.gpu = top.cpu;
    return top;
}

/* Without an accelerator the cores that are on do its work. */
static double gpu_clock(const struct ew_profile *b, const struct ew_mode *m)
{
    return b->gpu_mhz ? m->gpu : m->cpu * m->cores / (double)b->cores;
}

static double base_power(const struct ew_profile *b, const struct ew_mode *m,
                         const struct ew_mode *top)
{
    const struct ew_profile_model *k = &b->model;
    const double xg = m->gpu / top->gpu, xc = m->cpu / top->cpu;
    return k->base_w + k->base_mem_w * m->mem / top->mem + k->base_gpu_w * xg * xg +
           k->base_cpu_w * xc * xc * (0.5 + m->cores / (2 * top->cores));
}

/* A board that would take more than its budget is slowed until it does not. */
static void throttle(const struct ew_profile *board, double joules, struct ew_sim_epoch *out)
{
    const double slower = joules / (board->power_w - out->base_w) / out->epoch_s;
    out->compute_s += out->epoch_s * (slower - 1);
    out->epoch_s *= slower;
    out->power_w = board->power_w;
    out->throttled = true;
}

ew_err ew_simulate(const struct ew_profile *board, const struct ew_sim_work *w,
                   const struct ew_sim_setting *s, struct ew_sim_epoch *out)
{
    const struct ew_profile_model *k = &board->model;
    const struct ew_mode *m = &s->mode;
    const struct ew_mode top = ew_sim_top(board);
    EW_CHECK(k->gpu > 0, EW_ERR_UNSUPPORTED, "%s: its profile has no [model] to simulate",
             board->name);
    const double clock = gpu_clock(board, m);
    out->throttled = out->hot = false;
    out->temp_c = NAN;
    const double cores2 = m->cores * m->cores;
    const double host = soft_max(1 / m->cpu, HOST_MEM / m->mem, HOST_SHARP);
    const double gpu = soft_max(k->gpu * w->gpu_s / clock, k->mem * w->mem_s / m->mem, GPU_SHARP);
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
    if (s->seed) {
        const double slower = exp(NOISE * ew_rng_normal(s->seed, 31, 0));
        out->compute_s *= slower;
        out->stall_s *= slower;
        epoch *= slower;
    }
    const double xg = clock / top.gpu, xc = m->cpu / top.cpu;
    out->epoch_s = epoch;
    out->base_w = base_power(board, m, &top);
    const double joules = k->gpu_energy * w->gpu_j * (1 + GPU_RISE * pow(xg, GPU_POW)) +
                          k->cpu_energy * w->cpu_j * xc * xc;
    out->power_w = out->base_w + joules / epoch;
    if (board->power_w > out->base_w && out->power_w > board->power_w)
        throttle(board, joules, out);
    if (s->seed)
        out->power_w *= exp(POWER_NOISE * ew_rng_normal(s->seed, 32, 0));
    out->energy_j = out->power_w * out->epoch_s;
    return EW_OK;
}
