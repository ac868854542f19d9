/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend: discovery, opening, queues, and the table of functions.  Memory is in
 * cuda_memory.c, programs are in cuda_program.c, kernel choice is in cuda_offer.c. */
#include "backend/cuda/cuda_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda_state.h"
#include "base/num.h"
#include "cuda_id.h"

#define WORKSPACE ((size_t)256 << 20) /* limit for cuDNN and cuBLASLt */
#define PLANNED   ((size_t)2 << 30)   /* limit for one convolution's workspace in a plan */

/* ---- The device ---- */

static void describe(const struct ew_cuda_device *d, struct ew_device_found *out)
{
    snprintf(out->name, sizeof(out->name), "%s", d->name);
    snprintf(out->target, sizeof(out->target), "cuda sm_%d%d", d->major, d->minor);
    snprintf(out->kernels, sizeof(out->kernels), "%s", EW_CUDA_ID);
    out->memory_bytes = d->memory;
}

static bool find(int i, struct ew_device_found *out)
{
    const struct ew_cuda_api *cu;
    struct ew_cuda_device d;
    int n = 0;
    if (ew_cuda_open(&cu) != EW_OK) {
        snprintf(out->why, sizeof(out->why), "%s", ew_error_message());
        return i == 0;
    }
    if (cu->device_count(&n) || i >= n || cu->device_info(i, &d))
        return false;
    snprintf(out->device, sizeof(out->device), "cuda:%d", i);
    describe(&d, out);
    return true;
}

static void close_cuda(struct ew_backend *be)
{
    struct ew_cuda_state *o = (struct ew_cuda_state *)be;
    const struct ew_cuda_api *cu = o->cuda.cu;
    for (int i = 0; i < EW_CUDA_SLOTS; i++) {
        cu->release_host(o->slots[i].host);
        cu->release(o->slots[i].device);
        cu->event_free(o->slots[i].event);
    }
    for (int i = 0; i < EW_CUDA_STAGES; i++) {
        cu->release(o->stages[i].device);
        cu->event_free(o->stages[i].event);
    }
    for (int i = 0; i < EW_EVENTS; i++)
        cu->event_free(o->events[i]);
    cu->queue_close(o->ahead);
    cu->event_free(o->side.forked);
    cu->event_free(o->side.joined);
    cu->queue_close(o->side.q);
    cu->release(o->cuda.rates);
    cu->release(o->cuda.scale);
    cu->queue_close(o->cuda.q);
    free(o->casts.at);
    free(o->pinned);
    free(o);
}

/* Values of --precision: the storage type of activations, and the arithmetic of float32
 * products. */
static const struct precision {
    const char *name;
    enum ew_dtype storage;
    int type, math;
} precisions[] = {{"fp32", EW_F32, EW_CUDA_F32, EW_CUDA_MATH_FP32},
                  {"tf32", EW_F32, EW_CUDA_F32, EW_CUDA_MATH_TF32},
                  {"bf16", EW_BF16, EW_CUDA_BF16, EW_CUDA_MATH_TF32},
                  {"fp16", EW_F16, EW_CUDA_F16, EW_CUDA_MATH_TF32}};

static const struct precision *find_precision(const char *name)
{
    for (size_t i = 0; i < EW_COUNT(precisions); i++)
        if (strcmp(precisions[i].name, name) == 0)
            return &precisions[i];
    return NULL;
}

/* Parses "0", "0,fp16", "tf32", "". */
static ew_err read_arguments(const char *text, int *device, const struct precision **precision,
                             bool *fast)
{
    char part[32];
    while (*text) {
        const size_t n = strcspn(text, ",:");
        snprintf(part, sizeof(part), "%.*s", (int)n, text);
        char *end;
        const long number = strtol(part, &end, 10);
        if (n && !*end && number >= 0 && number < 1024)
            *device = (int)number;
        else if (strcmp(part, "fast") == 0)
            *fast = true;
        else
            *precision = find_precision(part);
        EW_CHECK(*precision, EW_ERR_USAGE,
                 "%s is neither a number of a card nor fp32, tf32, bf16, fp16 or fast", part);
        text += n + (text[n] != 0);
    }
    return EW_OK;
}

/* Opens the queue, and allocates staging slots, rates and loss scale. */
static ew_err take_resources(struct ew_cuda_state *o, size_t memory, bool scaled)
{
    const size_t room = memory / 64 < WORKSPACE ? memory / 64 : WORKSPACE;
    const size_t planned = memory / 32 < PLANNED ? memory / 32 : PLANNED;
    struct ew_cuda *be = &o->cuda;
    const struct ew_cuda_scale first = {.scale = EW_CUDA_SCALE_FIRST};
    o->side.room = room;
    o->side.planned = planned;
    o->side.deterministic = !o->fast;
    EW_CUDA_TRY(be->cu, queue_open(!o->fast, room, planned, &be->q));
    EW_CUDA_TRY(be->cu, alloc(sizeof(*be->rates), (void **)&be->rates));
    for (int i = 0; i < EW_CUDA_SLOTS; i++) {
        EW_CUDA_TRY(be->cu, alloc_host(EW_CUDA_SLOT_BYTES, &o->slots[i].host));
        EW_CUDA_TRY(be->cu, event_new(0, &o->slots[i].event));
        if (be->type != EW_CUDA_F32)
            EW_CUDA_TRY(be->cu, alloc(EW_CUDA_SLOT_BYTES, &o->slots[i].device));
    }
    for (int i = 0; i < EW_EVENTS; i++)
        EW_CUDA_TRY(be->cu, event_new(1, &o->events[i]));
    if (!scaled)
        return EW_OK;
    EW_CUDA_TRY(be->cu, alloc(sizeof(*be->scale), (void **)&be->scale));
    EW_CUDA_TRY(be->cu, copy(be->q, be->scale, &first, sizeof(first), EW_CUDA_TO_DEVICE));
    EW_CUDA_TRY(be->cu, queue_wait(be->q));
    return EW_OK;
}

/* ew_device_passes.launch_macs: joined parallel convolutions do more arithmetic, but save launches
 * and copies of outputs.  On an H200 with tensor cores even SqueezeNet's 1.6 billion at batch 64
 * pay off, in full float32 25 million at batch 1. */
static int64_t launch_macs(const struct ew_cuda_device *d, const struct precision *precision)
{
    const bool full = precision->type == EW_CUDA_F32 && precision->math == EW_CUDA_MATH_FP32;
    return (int64_t)d->processors * (full ? 1 << 18 : 1 << 25);
}

/* ew_device_info.macs_per_byte, measured on an H200: 790 TFLOP/s in bfloat16 and 4.3 TB/s.  The
 * ratios of other cards, an Orin's among them, are nearly the same. */
static double macs_per_byte(const struct precision *precision)
{
    if (precision->type != EW_CUDA_F32)
        return 90;
    return precision->math == EW_CUDA_MATH_TF32 ? 45 : 7;
}

static ew_err start(struct ew_cuda_state *o, int device, const struct precision *precision)
{
    struct ew_cuda *be = &o->cuda;
    struct ew_cuda_device d;
    int n = 0;
    EW_CUDA_TRY(be->cu, device_count(&n));
    EW_CHECK(device < n, EW_ERR_UNSUPPORTED, "no card %d among %d", device, n);
    EW_CUDA_TRY(be->cu, device_info(device, &d));
    EW_CUDA_TRY(be->cu, device_use(device));
    EW_CUDA_TRY(be->cu, kernel_arch(&be->arch));
    EW_TRY(take_resources(o, d.memory, precision->storage == EW_F16));
    struct ew_device_found found;
    describe(&d, &found);
    snprintf(o->name, sizeof(o->name), "%s", found.name);
    const bool plain = precision == &precisions[0];
    const char *const fast = o->fast ? "fast" : "";
    snprintf(o->target, sizeof(o->target), "%.18s%s%s%s%s", found.target, plain ? "" : " ",
             plain ? "" : precision->name, o->fast ? " " : "", fast);
    snprintf(o->device, sizeof(o->device), "cuda:%d%s%s%s%s", device, plain ? "" : ",",
             plain ? "" : precision->name, o->fast ? "," : "", fast);
    be->base.info = (struct ew_device_info){.backend = "cuda",
                                            .device = o->device,
                                            .name = o->name,
                                            .target = o->target,
                                            .kernels = EW_CUDA_ID,
                                            .threads = 1,
                                            .memory_bytes = d.memory,
                                            .storage = precision->storage,
                                            .updates_last = true,
                                            .passes = {.launch_macs = launch_macs(&d, precision)},
                                            .macs_per_byte = macs_per_byte(precision),
                                            .fused = EW_FUSED_NORM_ADD | EW_FUSED_NORM_ACT |
                                                     EW_FUSED_CONV_RELU | EW_FUSED_SINK_ACT};
    ew_backend_identify(&be->base);
    return EW_OK;
}

static ew_err open_cuda(const char *arguments, const struct ew_backend_opts *opts,
                        struct ew_backend **out)
{
    const struct ew_cuda_api *cu;
    const struct precision *precision = &precisions[0];
    int device = 0;
    bool fast = false;
    EW_TRY(read_arguments(arguments, &device, &precision, &fast));
    EW_TRY(ew_cuda_open(&cu));
    struct ew_cuda_state *o = calloc(1, sizeof(*o));
    EW_CHECK(o, EW_ERR_MEMORY, "no memory for a backend");
    o->cuda.base.type = &ew_cuda_type;
    o->cuda.cu = cu;
    o->cuda.math = precision->math;
    o->cuda.type = precision->type;
    o->cuda.casts = &o->casts;
    o->cuda.side = &o->side;
    o->fast = fast;
    const ew_err e = start(o, device, precision);
    if (e != EW_OK) {
        close_cuda(&o->cuda.base);
        return e;
    }
    *out = &o->cuda.base;
    return EW_OK;
}

/* ---- Side queue ---- */

ew_err ew_cuda_open_side(const struct ew_call *c)
{
    const struct ew_cuda *be = ew_cuda(c->be);
    struct ew_cuda_side_stream *b = be->side;
    if (b->q)
        return EW_OK;
    EW_CUDA_TRY(be->cu, event_new(0, &b->forked));
    EW_CUDA_TRY(be->cu, event_new(0, &b->joined));
    EW_CUDA_TRY(be->cu, queue_open(b->deterministic, b->room, b->planned, &b->q));
    return EW_OK;
}

struct ew_cuda_queue *ew_cuda_side(const struct ew_call *c)
{
    const struct ew_cuda *be = ew_cuda(c->be);
    return be->side->q && c->din[0] && c->din[1] ? be->side->q : be->q;
}

ew_err ew_cuda_fork(const struct ew_cuda *be, struct ew_cuda_queue *side)
{
    if (side == be->q)
        return EW_OK;
    EW_CUDA_TRY(be->cu, event_record(be->q, be->side->forked));
    EW_CUDA_TRY(be->cu, event_hold(side, be->side->forked));
    return EW_OK;
}

ew_err ew_cuda_join(const struct ew_cuda *be, struct ew_cuda_queue *side)
{
    if (side == be->q)
        return EW_OK;
    EW_CUDA_TRY(be->cu, event_record(side, be->side->joined));
    EW_CUDA_TRY(be->cu, event_hold(be->q, be->side->joined));
    return EW_OK;
}

static ew_err sync(struct ew_backend *be)
{
    ((struct ew_cuda_state *)be)->running = false;
    return ew_cuda_check(ew_cuda(be)->cu, ew_cuda(be)->cu->queue_wait(ew_cuda(be)->q), "run");
}

/* ---- Events (struct ew_backend_type) ---- */

static ew_err event_record(struct ew_backend *be, int event)
{
    struct ew_cuda_state *o = (struct ew_cuda_state *)be;
    o->last = event;
    return ew_cuda_check(o->cuda.cu, o->cuda.cu->event_record(o->cuda.q, o->events[event]), "mark");
}

static ew_err event_wait(struct ew_backend *be, int event)
{
    struct ew_cuda_state *o = (struct ew_cuda_state *)be;
    o->running = o->running && event != o->last;
    return ew_cuda_check(o->cuda.cu, o->cuda.cu->event_wait(o->events[event]), "run");
}

static ew_err event_elapsed(struct ew_backend *be, int from, int to, int64_t *ns)
{
    const struct ew_cuda_state *o = (const struct ew_cuda_state *)be;
    float ms = 0;
    EW_TRY(ew_cuda_check(o->cuda.cu, o->cuda.cu->event_ms(o->events[from], o->events[to], &ms),
                         "time"));
    *ns = (int64_t)((double)ms * 1e6);
    return EW_OK;
}

const struct ew_backend_type ew_cuda_type = {.name = "cuda",
                                             .help = "NVIDIA GPUs",
                                             .find = find,
                                             .open = open_cuda,
                                             .close = close_cuda,
                                             .alloc = ew_cuda_alloc,
                                             .free = ew_cuda_release,
                                             .write = ew_cuda_put,
                                             .read = ew_cuda_get,
                                             .fill = ew_cuda_fill,
                                             .peaks = ew_cuda_peaks,
                                             .host_alloc = ew_cuda_alloc_pinned,
                                             .host_free = ew_cuda_free_pinned,
                                             .write_floats = ew_cuda_put_floats,
                                             .read_floats = ew_cuda_get_floats,
                                             .address = ew_cuda_address,
                                             .offer = ew_cuda_offer_all,
                                             .task = ew_cuda_task,
                                             .load = ew_cuda_load,
                                             .unload = ew_cuda_unload,
                                             .run = ew_cuda_run,
                                             .loss_scale = ew_cuda_loss_scale,
                                             .sync = sync,
                                             .event_record = event_record,
                                             .event_wait = event_wait,
                                             .event_elapsed = event_elapsed};
