/* SPDX-License-Identifier: Apache-2.0 */
/* Performance model of a DPU: cycles of its units, DDR traffic, start-up times.
 *
 * A layer takes the longer of its arithmetic and its transfers, which overlap, plus a start-up
 * time. Weights are prefetched while the previous layer leaves the memory idle.  Feature maps that
 * fit into the image buffer stay on chip; larger ones are stored, and loaded again by each layer
 * that reads them.  An addition fused into a convolution is done tile by tile before anything is
 * stored.  The resulting traffic of ResNet-50 agrees with published counts to 5 %
 * (docs/fpga.md). */
#include "backend/dpu/dpu_model.h"

#include <math.h>

/* ---- Constants: fitted on the published speeds of five networks on KV260 and ZCU104 ---- */

const struct ew_dpu_constants ew_dpu_fitted = {.conv_s = 9e-6,
                                               .other_s = 18e-6,
                                               .port_share = 0.80,
                                               .ddr_share = 0.55,
                                               .swap = 1.5,
                                               .depthwise_speed = 2,
                                               .pool_speed = 4};

#define PORT_BYTES 32 /* two 128-bit ports per core (PG338) */

/* ---- Not fitted: assumed, or from single published figures ---- */

#define HOST_FLOPS 5e9 /* four Cortex-A53, on float layers that the DPU cannot do: assumed */
#define HOST_CORES 4
#define RUN_W      6.7 /* host and memory under load: QuTiBench's 21.4 W with one thread */
#define CORE_W     5.5 /* per B4096 core at 300 MHz: its 26.9 W with all threads, less that */
#define CORE_MACS  2048.0
#define CORE_MHZ   300.0

static int64_t ceil_div(int64_t n, int64_t each)
{
    return (n + each - 1) / each;
}

/* Cycles at full utilisation: the convolution unit computes PP rows at once, the others PP / 2. */
static int64_t ticks_of(const struct ew_dpu_layer *l, const struct ew_dpu_arch *a)
{
    const int64_t taps = l->kernel_h * l->kernel_w;
    const int64_t slow = ceil_div(l->out_h, a->pp / 2) * l->out_w * ceil_div(l->out_c, a->icp);
    if (l->unit == EW_DPU_HOST)
        return 0;
    if (l->unit == EW_DPU_ELEMENT)
        return slow * (l->n_in > 0 ? l->n_in : 1);
    if (l->unit != EW_DPU_CONV)
        return slow * taps;
    const int64_t pixels = ceil_div(l->out_h, a->pp) * l->out_w * ceil_div(l->out_c, a->ocp);
    /* Channel augmentation: taps of a row fill unused input channels. */
    if (l->kernel_w > 1 && l->in_c * l->kernel_w <= 2 * a->icp)
        return pixels * ceil_div(l->in_c * l->kernel_w, a->icp) * l->kernel_h;
    return pixels * ceil_div(l->in_c, a->icp) * taps;
}

/* True if a feature map does not fit into the image buffer. */
static bool in_ddr(const struct ew_dpu_net *n, const struct ew_dpu_arch *a, int tensor)
{
    int root = tensor;
    while (n->tensors[root].root != root)
        root = n->tensors[root].root;
    return n->tensors[root].bytes > (int64_t)a->image_kib * 1024;
}

/* DDR traffic of a layer.  A fused addition (`fused`) takes the layer's output before it is
 * stored. */
static void traffic(const struct ew_dpu_net *n, const struct ew_dpu_arch *a, struct ew_dpu_layer *l,
                    const struct ew_dpu_layer *fused)
{
    const struct ew_dpu_layer *last = fused ? fused : l;
    int64_t maps = 0, weights = l->weight_bytes;
    for (int i = 0; i < l->n_in; i++)
        if (in_ddr(n, a, l->in[i]) || n->tensors[l->in[i]].is_input)
            maps += l->in_bytes[i];
    const int64_t image = (int64_t)a->image_kib * 1024, filter = (int64_t)a->weight_kib * 1024;
    if (maps && weights > filter) {
        /* Neither fits: load the maps for each part of the filters, or the filters for each part of
         * the maps, whichever is less. */
        const int64_t by_filters = maps * ceil_div(weights, filter) + weights;
        const int64_t by_maps = maps + weights * ceil_div(maps, image);
        weights = (by_filters < by_maps ? by_filters : by_maps) - maps;
    }
    for (int i = 0; fused && i < fused->n_in; i++)
        if (fused->in[i] != l->out && in_ddr(n, a, fused->in[i]))
            maps += fused->in_bytes[i];
    l->load_bytes = maps + weights;
    const bool leaves = n->tensors[last->out].reads == 0 && n->tensors[last->out].root == last->out;
    l->store_bytes = in_ddr(n, a, last->out) || leaves ? n->tensors[last->out].bytes : 0;
}

static struct ew_dpu_layer *fused_addition(const struct ew_dpu_net *n, int layer)
{
    for (int k = layer + 1; k < n->n_layers; k++)
        if (n->layers[k].fused_into == layer)
            return &n->layers[k];
    return NULL;
}

/* ---- Time ---- */

/* Cycles of the convolution unit: a line of pixels for each set of weights, plus the switch to the
 * next set.  Results leave at OCP bytes a cycle, so PP x OCP of them take at least PP cycles. */
static double conv_cycles(const struct ew_dpu_layer *l, const struct ew_dpu_arch *a, double swap)
{
    const int64_t lines = ceil_div(l->out_h, a->pp) * ceil_div(l->out_c, a->ocp);
    const int64_t sets = l->ticks / (l->out_w > 0 ? l->out_w : 1);
    return fmax((double)l->ticks + swap * (double)sets, (double)(lines * l->out_w * a->pp));
}

/* Cycles that a layer occupies its unit. */
static double cycles_of(const struct ew_dpu_layer *l, const struct ew_dpu_arch *a,
                        const struct ew_dpu_constants *by)
{
    if (l->unit == EW_DPU_CONV)
        return conv_cycles(l, a, by->swap);
    return (double)l->ticks / (l->unit == EW_DPU_DEPTHWISE ? by->depthwise_speed
                               : l->unit == EW_DPU_POOL    ? by->pool_speed
                                                           : 1);
}

static bool has_own_step(const struct ew_dpu_layer *l)
{
    return l->fused_into < 0 && l->unit != EW_DPU_HOST;
}

static double bandwidth(const struct ew_dpu_config *c, const struct ew_dpu_constants *k, int cores)
{
    const double port = k->port_share * PORT_BYTES * c->clock_mhz * 1e6;
    return fmin(port, k->ddr_share * c->ddr_gb_s * 1e9 / cores);
}

/* Sum of all DPU layers' times when `cores` cores share the memory bandwidth. */
static double core_time(struct ew_dpu_net *n, const struct ew_dpu_config *c,
                        const struct ew_dpu_constants *by, int cores)
{
    const double clock = c->clock_mhz * 1e6, rate = bandwidth(c, by, cores);
    const double room_s = c->arch->weight_kib * 1024 / rate;
    double sum = 0, idle_s = 0; /* idle memory time during the previous layer */
    for (int k = 0; k < n->n_layers; k++) {
        struct ew_dpu_layer *l = &n->layers[k], *j = fused_addition(n, k);
        if (!has_own_step(l))
            continue;
        const double cycles = cycles_of(l, c->arch, by) + (j ? cycles_of(j, c->arch, by) : 0);
        const double ahead = fmin(fmin(idle_s, room_s), (double)l->weight_bytes / rate);
        const double moved = (double)(l->load_bytes + l->store_bytes) / rate - ahead;
        const double busy = fmax(cycles / clock, moved);
        idle_s = busy - moved;
        l->ddr_bound = moved > cycles / clock;
        l->seconds =
            busy + (l->unit == EW_DPU_CONV ? by->conv_s : by->other_s) + (j ? by->other_s : 0);
        sum += l->seconds;
    }
    return sum;
}

/* ---- Totals ---- */

static void add_up(struct ew_dpu_net *n, struct ew_dpu_times *out)
{
    for (int k = 0; k < n->n_layers; k++) {
        struct ew_dpu_layer *l = &n->layers[k];
        if (l->unit == EW_DPU_HOST) {
            l->seconds = (double)l->flops / HOST_FLOPS;
            out->layers_host_s += l->seconds;
            out->host_layers += l->flops > 0;
            continue;
        }
        out->layers++;
        out->macs += l->macs;
        out->ticks += l->ticks;
        out->weight_bytes += l->weight_bytes;
        out->load_bytes += l->load_bytes;
        out->store_bytes += l->store_bytes;
    }
}

static void set_power(const struct ew_dpu_config *c, struct ew_dpu_times *out)
{
    const struct ew_dpu_arch *a = c->arch;
    const double core = CORE_W * a->pp * a->icp * a->ocp / CORE_MACS * c->clock_mhz / CORE_MHZ;
    if (c->board->idle_w > 0) {
        out->watts_one = c->board->idle_w + RUN_W + core;
        out->watts_all = c->board->idle_w + RUN_W + c->cores * core;
    }
}

void ew_dpu_time(struct ew_dpu_net *n, const struct ew_dpu_config *c, struct ew_dpu_times *out)
{
    ew_dpu_time_by(n, c, &ew_dpu_fitted, out);
}

void ew_dpu_time_by(struct ew_dpu_net *n, const struct ew_dpu_config *c,
                    const struct ew_dpu_constants *by, struct ew_dpu_times *out)
{
    const struct ew_dpu_arch *a = c->arch;
    *out = (struct ew_dpu_times){.host_s = c->board->host_ms * 1e-3};
    for (int k = 0; k < n->n_layers; k++) {
        n->layers[k].ticks = ticks_of(&n->layers[k], a);
        n->layers[k].load_bytes = n->layers[k].store_bytes = 0;
        n->layers[k].seconds = 0;
        if (has_own_step(&n->layers[k]))
            traffic(n, a, &n->layers[k], fused_addition(n, k));
    }
    out->shared_s = core_time(n, c, by, c->cores);
    out->core_s = core_time(n, c, by, 1); /* last: these times stay in the layers */
    add_up(n, out);
    out->latency_s = out->core_s + out->host_s + out->layers_host_s;
    /* Threads of the host process different images, but share its cores for layers that run
     * there. */
    const double host = out->host_s / HOST_CORES + out->layers_host_s;
    out->images_s = 1 / fmax(fmax(out->shared_s / c->cores, host), 1e-9);
    const double peak = (double)a->pp * a->icp * a->ocp * c->clock_mhz * 1e6;
    out->efficiency = (double)out->macs / fmax(out->core_s * peak, 1);
    set_power(c, out);
}
