/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU backend: host memory, and programs that are loops over kernels. cpu_offer.c has the
 * kernels. */
#include "backend/cpu/cpu_backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cpu/catalogue/catalogue.h"
#include "backend/cpu/cpu_offer.h"
#include "backend/cpu/fuse/fuse.h"
#include "base/clock.h"
#include "base/flush.h"
#include "base/mem.h"
#include "kernel_id.h"

/* ---- The device ---- */

#define NAME_CHARS 128
/* ew_device_passes.cache_bytes: most cores have 512 KiB to 2 MiB of L2, for all that a layer reads
 * and writes.  A constant, so that a network has the same steps on every machine. */
#define CACHE_BYTES (512 << 10)

/* The CPU's model from /proc/cpuinfo, or the part number on Arm: part of the tuner's keys. */
static void read_name(char *out, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[512];
    snprintf(out, size, "unknown CPU");
    while (f && fgets(line, sizeof(line), f)) {
        const bool part = strncmp(line, "CPU part", 8) == 0;
        const char *colon = strchr(line, ':');
        if (!colon || (!part && strncmp(line, "model name", 10) != 0))
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, size, "%s%s", part ? "Arm part " : "", colon + 1 + (colon[1] == ' '));
        break;
    }
    if (f)
        fclose(f);
}

static size_t memory_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
}

static bool find(int i, struct ew_device_found *out)
{
    const struct ew_kernels *isa;
    if (i > 0)
        return false;
    read_name(out->name, sizeof(out->name));
    out->memory_bytes = memory_bytes();
    if (ew_isa_pick(&isa) == EW_OK) {
        snprintf(out->device, sizeof(out->device), "cpu");
        snprintf(out->target, sizeof(out->target), "%s", isa->isa);
        snprintf(out->kernels, sizeof(out->kernels), "%s", EW_KERNEL_ID);
    } else {
        snprintf(out->why, sizeof(out->why), "%s", ew_error_message());
    }
    return true;
}

struct cpu_backend {
    struct ew_cpu cpu;
    char name[NAME_CHARS];
};

static void close_cpu(struct ew_backend *be)
{
    struct cpu_backend *o = (struct cpu_backend *)be;
    ew_pool_free(o->cpu.pool);
    free(o);
}

static ew_err open_cpu(const char *arguments, const struct ew_backend_opts *o,
                       struct ew_backend **out)
{
    EW_CHECK(!*arguments, EW_ERR_USAGE, "the CPU takes no arguments");
    struct cpu_backend *b = calloc(1, sizeof(*b));
    EW_CHECK(b, EW_ERR_MEMORY, "no memory for a backend");
    struct ew_cpu *cpu = &b->cpu;
    ew_err e = o->reference ? EW_OK : ew_isa_pick(&cpu->isa);
    if (e == EW_OK && o->threads != 1)
        e = ew_pool_new(o->threads, &cpu->pool);
    if (e != EW_OK) {
        close_cpu(&cpu->base);
        return e;
    }
    read_name(b->name, sizeof(b->name));
    cpu->base.type = &ew_cpu_type;
    cpu->base.info = (struct ew_device_info){
        .backend = "cpu",
        .device = "cpu",
        .name = b->name,
        .target = cpu->isa ? cpu->isa->isa : "reference",
        .kernels = EW_KERNEL_ID,
        .threads = ew_pool_threads(cpu->pool),
        .memory_bytes = memory_bytes(),
        .shares_host = true,
        .passes = {.cache_bytes = cpu->isa ? CACHE_BYTES : 0},
        .fused = cpu->isa ? EW_FUSED_NORM_ACT | EW_FUSED_CONV_RELU | EW_FUSED_SINK_ACT : 0};
    ew_backend_identify(&cpu->base);
    *out = &cpu->base;
    return EW_OK;
}

static struct ew_pool *pool_of(const struct ew_backend *be)
{
    return ew_cpu(be)->pool;
}

/* ---- Peaks ---- */

#define PEAK_ROUNDS 12

struct peak {
    const struct ew_kernels *isa;
    int64_t flops[256]; /* by thread */
};

static void peak_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    struct peak *p = ctx;
    float sink[64] = {0};
    for (int64_t i = begin; i < end; i++)
        p->flops[worker] += p->isa->peak(20000, sink);
}

static ew_err peaks(struct ew_backend *be, struct ew_peaks *out)
{
    const struct ew_cpu *cpu = ew_cpu(be);
    const int threads = ew_pool_threads(cpu->pool);
    for (int round = 0; cpu->isa && round < PEAK_ROUNDS; round++) {
        struct peak p = {.isa = cpu->isa};
        const int64_t start = ew_clock_ns();
        ew_pool_run(cpu->pool, (int64_t)threads * 4, peak_range, &p);
        const double seconds = (double)(ew_clock_ns() - start) * 1e-9;
        double flops = 0;
        for (size_t i = 0; i < EW_COUNT(p.flops); i++)
            flops += (double)p.flops[i];
        out->flops = fmax(out->flops, flops / seconds);
    }
    return EW_OK;
}

/* ---- Memory ---- */

struct block {
    struct ew_memory base;
    char *data;
};

static char *data_of(struct ew_memory *m)
{
    return ((struct block *)m)->data;
}

static ew_err alloc(struct ew_backend *be, size_t bytes, struct ew_memory **out)
{
    struct block *b = calloc(1, sizeof(*b));
    EW_CHECK(b, EW_ERR_MEMORY, "no memory for a block");
    void *data = NULL;
    const ew_err e = ew_aligned_new(bytes, &data);
    if (e != EW_OK) {
        free(b);
        return e;
    }
    *b = (struct block){.base = {be, bytes}, .data = data};
    *out = &b->base;
    return EW_OK;
}

static void release(struct ew_memory *m)
{
    free(data_of(m));
    free(m);
}

static ew_err put(struct ew_memory *m, size_t offset, const void *from, size_t bytes)
{
    memcpy(data_of(m) + offset, from, bytes);
    return EW_OK;
}

static ew_err get(struct ew_memory *m, size_t offset, void *to, size_t bytes)
{
    memcpy(to, data_of(m) + offset, bytes);
    return EW_OK;
}

static ew_err fill(struct ew_memory *m, size_t offset, int byte, size_t bytes)
{
    memset(data_of(m) + offset, byte, bytes);
    return EW_OK;
}

static void *address(struct ew_memory *m, size_t offset)
{
    return data_of(m) + offset;
}

/* ---- Programs ---- */

struct program {
    struct ew_program base;
    int n;
    struct ew_command commands[];
};

static ew_err load(struct ew_backend *be, const struct ew_command *commands, int n,
                   struct ew_program **out)
{
    struct program *l = malloc(sizeof(*l) + (size_t)n * sizeof(*commands));
    EW_CHECK(l, EW_ERR_MEMORY, "no memory for %d steps", n);
    l->base.be = be;
    l->n = n;
    memcpy(l->commands, commands, (size_t)n * sizeof(*commands));
    *out = &l->base;
    return EW_OK;
}

static void unload(struct ew_program *p)
{
    free(p);
}

static ew_err run_all(const struct program *l, int64_t *ns)
{
    for (int k = 0; k < l->n; k++) {
        const struct ew_command *c = &l->commands[k];
        const int64_t start = ns ? ew_clock_ns() : 0;
        const ew_err e = c->kernel->run(c->call);
        if (ns)
            ns[k] = ew_clock_ns() - start;
        if (e != EW_OK)
            return ew_fail_in(e, "node %s", c->call->name);
    }
    return EW_OK;
}

static ew_err run(struct ew_program *p, const struct ew_run_params *params, int64_t *ns)
{
    const uint64_t mode = ew_flush_begin();
    const ew_err e = run_all((const struct program *)p, ns);
    ew_flush_end(mode);
    return e;
}

const struct ew_backend_type ew_cpu_type = {.name = "cpu",
                                            .help = "the CPU of this machine",
                                            .find = find,
                                            .open = open_cpu,
                                            .close = close_cpu,
                                            .pool = pool_of,
                                            .peaks = peaks,
                                            .alloc = alloc,
                                            .free = release,
                                            .write = put,
                                            .read = get,
                                            .fill = fill,
                                            .address = address,
                                            .offer = ew_cpu_offer,
                                            .candidates = ew_cpu_candidates,
                                            .rewrite = ew_cpu_rewrite,
                                            .fuse = ew_cpu_fuse,
                                            .task = ew_cpu_task,
                                            .load = load,
                                            .unload = unload,
                                            .run = run};
