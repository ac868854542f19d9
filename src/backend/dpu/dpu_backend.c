/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated DPU as a backend.  Memory, threads and programs are the CPU backend's; the kernels
 * are in dpu_conv.c and dpu_pool_eltwise.c, the performance model of the hardware is in
 * dpu_model.c. */
#include "backend/dpu/dpu_backend.h"

#include <stdio.h>
#include <stdlib.h>

#include "backend/cpu/cpu_offer.h"
#include "graph/ops.h"

static const struct ew_dpu *dpu(const struct ew_backend *be)
{
    return (const struct ew_dpu *)be;
}

static bool find(int i, struct ew_device_found *out)
{
    struct ew_device_found cpu = {0};
    struct ew_dpu_config config;
    if (i > 0 || !ew_cpu_type.find(0, &cpu) || ew_dpu_config_parse("", &config) != EW_OK)
        return false;
    char text[96];
    ew_dpu_config_text(&config, text, sizeof(text));
    snprintf(out->device, sizeof(out->device), "dpu");
    snprintf(out->name, sizeof(out->name), "emulated, as %s", text);
    snprintf(out->target, sizeof(out->target), "dpu on %.48s", cpu.target);
    snprintf(out->kernels, sizeof(out->kernels), "%s", cpu.kernels);
    out->emulated = true;
    return true;
}

static void close_dpu(struct ew_backend *be)
{
    ew_backend_close(dpu(be)->host);
    free(be);
}

static ew_err open_dpu(const char *arguments, const struct ew_backend_opts *o,
                       struct ew_backend **out)
{
    struct ew_dpu_config config;
    EW_TRY(ew_dpu_config_parse(arguments, &config));
    struct ew_dpu *d = calloc(1, sizeof(*d));
    EW_CHECK(d, EW_ERR_MEMORY, "no memory for a backend");
    const ew_err e = ew_cpu_type.open("", o, &d->host);
    if (e != EW_OK) {
        free(d);
        return e;
    }
    d->config = config;
    d->cpu = *ew_cpu(d->host);
    d->cpu.base.type = &ew_dpu_type;
    ew_dpu_config_text(&config, d->name, sizeof(d->name));
    snprintf(d->target, sizeof(d->target), "dpu on %.48s", d->cpu.base.info.target);
    snprintf(d->device, sizeof(d->device), "dpu%s%s", *arguments ? ":" : "", arguments);
    struct ew_device_info *info = &d->cpu.base.info;
    info->backend = "dpu";
    info->device = d->device;
    info->name = d->name;
    info->target = d->target;
    info->fused = 0;
    info->passes = (struct ew_device_passes){.lowers_pow2 = true};
    info->emulated = true;
    ew_backend_identify(&d->cpu.base);
    *out = &d->cpu.base;
    return EW_OK;
}

static struct ew_pool *pool(const struct ew_backend *be)
{
    return dpu(be)->cpu.pool;
}

static ew_err alloc(struct ew_backend *be, size_t bytes, struct ew_memory **out)
{
    return ew_cpu_type.alloc(dpu(be)->host, bytes, out);
}

static bool task(const struct ew_backend *be, enum ew_task which, const struct ew_optimizer *o,
                 struct ew_kernel *out)
{
    return ew_cpu_task(be, which, o, out);
}

static ew_err load(struct ew_backend *be, const struct ew_command *commands, int n,
                   struct ew_program **out)
{
    return ew_cpu_type.load(dpu(be)->host, commands, n, out);
}

static int offer_all(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    static const struct {
        const struct ew_op *op;
        int (*offer)(const struct ew_kernel_query *query, struct ew_kernel *out);
    } own[] = {{&ew_op_dpu_conv, ew_dpu_offer_conv},
               {&ew_op_dpu_add, ew_dpu_offer_eltwise},
               {&ew_op_dpu_mul, ew_dpu_offer_eltwise},
               {&ew_op_dpu_average_pool, ew_dpu_offer_pool},
               {&ew_op_dpu_input, ew_dpu_offer_input}};
    for (size_t i = 0; ew_cpu(query->be)->isa && i < EW_COUNT(own); i++)
        if (query->op == own[i].op && query->phase == EW_PHASE_FORWARD) {
            const int n = own[i].offer(query, out);
            if (n > 0)
                return n;
        }
    return ew_cpu_offer(query, out);
}

const struct ew_backend_type ew_dpu_type = {.name = "dpu",
                                            .help = "AMD's DPU on FPGAs, emulated to the bit",
                                            .find = find,
                                            .open = open_dpu,
                                            .close = close_dpu,
                                            .pool = pool,
                                            .alloc = alloc,
                                            .offer = offer_all,
                                            .task = task,
                                            .load = load};
