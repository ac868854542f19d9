/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA device as a backend: opening it, its memory, and programs, which are captured into graphs
 * of launches.  Which kernels there are is cuda_offer.c's. */
#include "backend/cuda/cuda_backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "cuda_id.h"
#include "op/optimizer.h"

#define WORKSPACE    ((size_t)256 << 20) /* of cuDNN and cuBLASLt, at most */
#define PLANNED      ((size_t)2 << 30)   /* of one convolution within a plan, at most */
#define SLOTS        4
#define SLOT_BYTES   ((size_t)4 << 20)
#define STAGES       8
#define AHEAD_BYTES  ((size_t)128 << 10) /* from here on copies run ahead of the queue */
#define DEVICE_CHARS 64

/* Pinned memory through which writes and reads go. */
struct slot {
    void *host, *event;
    void *device; /* where float32 wait to be converted; NULL: nothing is */
};

/* Memory of the device to which copies of a next run's inputs go while a run is under way. */
struct stage {
    void *device, *event;
};

/* Memory of the host that the device copies from by itself. */
struct pinned {
    char *data;
    size_t bytes;
};

struct own {
    struct ew_cuda cuda;
    struct pinned *pinned;
    int n_pinned, cap_pinned;
    struct ew_cuda_copies copies;
    struct slot slots[SLOTS];
    int next;                    /* slot */
    struct ew_cuda_queue *ahead; /* of copies into stages; NULL: there are none */
    struct stage stages[STAGES];
    int next_stage;
    bool running; /* something was run since the last wait */
    void *moments[EW_MOMENTS];
    int last;  /* moment that was marked */
    bool fast; /* sums need no fixed order */
    struct ew_cuda_beside beside;
    char name[128], target[32], device[DEVICE_CHARS];
};

#define TRY(be, call) EW_TRY(ew_cuda_check((be)->cu, (be)->cu->call, #call))

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
    struct own *o = (struct own *)be;
    const struct ew_cuda_api *cu = o->cuda.cu;
    for (int i = 0; i < SLOTS; i++) {
        cu->release_host(o->slots[i].host);
        cu->release(o->slots[i].device);
        cu->event_free(o->slots[i].event);
    }
    for (int i = 0; i < STAGES; i++) {
        cu->release(o->stages[i].device);
        cu->event_free(o->stages[i].event);
    }
    for (int i = 0; i < EW_MOMENTS; i++)
        cu->event_free(o->moments[i]);
    cu->queue_close(o->ahead);
    cu->event_free(o->beside.forked);
    cu->event_free(o->beside.joined);
    cu->queue_close(o->beside.q);
    cu->release(o->cuda.rates);
    cu->release(o->cuda.scale);
    cu->queue_close(o->cuda.q);
    free(o->copies.at);
    free(o->pinned);
    free(o);
}

/* What --precision names, and what it means: the type of activations, and how float32 multiply. */
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

/* "0", "0,fp16", "tf32", "" */
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

/* Queue, pinned memory, and what kernels read from run to run. */
static ew_err take_resources(struct own *o, size_t memory, bool scaled)
{
    const size_t room = memory / 64 < WORKSPACE ? memory / 64 : WORKSPACE;
    const size_t planned = memory / 32 < PLANNED ? memory / 32 : PLANNED;
    struct ew_cuda *be = &o->cuda;
    const struct ew_cuda_scale first = {.scale = EW_CUDA_SCALE_FIRST};
    o->beside.room = room;
    o->beside.planned = planned;
    o->beside.deterministic = !o->fast;
    TRY(be, queue_open(!o->fast, room, planned, &be->q));
    TRY(be, alloc(sizeof(*be->rates), (void **)&be->rates));
    for (int i = 0; i < SLOTS; i++) {
        TRY(be, alloc_host(SLOT_BYTES, &o->slots[i].host));
        TRY(be, event_new(0, &o->slots[i].event));
        if (be->type != EW_CUDA_F32)
            TRY(be, alloc(SLOT_BYTES, &o->slots[i].device));
    }
    for (int i = 0; i < EW_MOMENTS; i++)
        TRY(be, event_new(1, &o->moments[i]));
    if (!scaled)
        return EW_OK;
    TRY(be, alloc(sizeof(*be->scale), (void **)&be->scale));
    TRY(be, copy(be->q, be->scale, &first, sizeof(first), EW_CUDA_TO_DEVICE));
    TRY(be, queue_wait(be->q));
    return EW_OK;
}

static ew_err start(struct own *o, int device, const struct precision *precision)
{
    struct ew_cuda *be = &o->cuda;
    struct ew_cuda_device d;
    int n = 0;
    TRY(be, device_count(&n));
    EW_CHECK(device < n, EW_ERR_UNSUPPORTED, "there are %d CUDA devices", n);
    TRY(be, device_info(device, &d));
    TRY(be, device_use(device));
    TRY(be, kernel_arch(&be->arch));
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
    struct own *o = calloc(1, sizeof(*o));
    EW_CHECK(o, EW_ERR_MEMORY, "no memory for a backend");
    o->cuda.base.type = &ew_cuda_type;
    o->cuda.cu = cu;
    o->cuda.math = precision->math;
    o->cuda.type = precision->type;
    o->cuda.copies = &o->copies;
    o->cuda.beside = &o->beside;
    o->fast = fast;
    const ew_err e = start(o, device, precision);
    if (e != EW_OK) {
        close_cuda(&o->cuda.base);
        return e;
    }
    *out = &o->cuda.base;
    return EW_OK;
}

/* ---- Work beside the queue ---- */

ew_err ew_cuda_open_side(const struct ew_call *c)
{
    const struct ew_cuda *be = ew_cuda(c->be);
    struct ew_cuda_beside *b = be->beside;
    if (b->q)
        return EW_OK;
    TRY(be, event_new(0, &b->forked));
    TRY(be, event_new(0, &b->joined));
    TRY(be, queue_open(b->deterministic, b->room, b->planned, &b->q));
    return EW_OK;
}

struct ew_cuda_queue *ew_cuda_side(const struct ew_call *c)
{
    const struct ew_cuda *be = ew_cuda(c->be);
    return be->beside->q && c->din[0] && c->din[1] ? be->beside->q : be->q;
}

ew_err ew_cuda_fork(const struct ew_cuda *be, struct ew_cuda_queue *side)
{
    if (side == be->q)
        return EW_OK;
    TRY(be, event_record(be->q, be->beside->forked));
    TRY(be, event_hold(side, be->beside->forked));
    return EW_OK;
}

ew_err ew_cuda_join(const struct ew_cuda *be, struct ew_cuda_queue *side)
{
    if (side == be->q)
        return EW_OK;
    TRY(be, event_record(side, be->beside->joined));
    TRY(be, event_hold(be->q, be->beside->joined));
    return EW_OK;
}

/* ---- Memory ---- */

struct block {
    struct ew_memory base;
    char *data;
};

static struct own *own_of(struct ew_memory *m)
{
    return (struct own *)m->be;
}

static ew_err alloc(struct ew_backend *be, size_t bytes, struct ew_memory **out)
{
    const struct ew_cuda_api *cu = ew_cuda(be)->cu;
    struct block *b = calloc(1, sizeof(*b));
    EW_CHECK(b, EW_ERR_MEMORY, "no memory for a block");
    void *data = NULL;
    const int status = cu->alloc(bytes, &data);
    if (status) {
        size_t room = 0, total = 0;
        free(b);
        cu->device_memory(&room, &total);
        return ew_fail(EW_ERR_MEMORY, "%s: %zu MB are needed, %zu of %zu MB are free (%s)",
                       be->info.device, bytes >> 20, room >> 20, total >> 20,
                       cu->error_text(status));
    }
    *b = (struct block){.base = {be, bytes}, .data = data};
    *out = &b->base;
    return EW_OK;
}

static void release(struct ew_memory *m)
{
    struct block *b = (struct block *)m;
    ew_cuda_forget_copies(ew_cuda(m->be)->copies, b->data, m->bytes);
    ew_cuda(m->be)->cu->release(b->data);
    free(m);
}

/* A queue for copies that run ahead, and where they go: for whoever starts a run before the last
 * one is over. */
static ew_err open_ahead(struct own *o)
{
    struct ew_cuda *be = &o->cuda;
    if (o->ahead)
        return EW_OK;
    for (int i = 0; i < STAGES; i++) {
        if (!o->stages[i].device)
            TRY(be, alloc(SLOT_BYTES, &o->stages[i].device));
        if (!o->stages[i].event)
            TRY(be, event_new(0, &o->stages[i].event));
    }
    TRY(be, queue_open(1, 0, 0, &o->ahead));
    return EW_OK;
}

static ew_err alloc_pinned(struct ew_backend *be, size_t bytes, void **out)
{
    struct own *o = (struct own *)be;
    EW_TRY(ew_grow((void **)&o->pinned, &o->cap_pinned, o->n_pinned + 1, sizeof(*o->pinned)));
    TRY(&o->cuda, alloc_host(bytes, out));
    o->pinned[o->n_pinned++] = (struct pinned){*out, bytes};
    return EW_OK;
}

static void free_pinned(struct ew_backend *be, void *p)
{
    struct own *o = (struct own *)be;
    int i = 0;
    while (i < o->n_pinned && o->pinned[i].data != p)
        i++;
    EW_ASSERT(i < o->n_pinned);
    o->pinned[i] = o->pinned[--o->n_pinned];
    o->cuda.cu->release_host(p);
}

static bool is_pinned(const struct own *o, const void *p)
{
    for (int i = 0; i < o->n_pinned; i++)
        if ((uintptr_t)p - (uintptr_t)o->pinned[i].data < o->pinned[i].bytes)
            return true;
    return false;
}

/* The next slot, when what it was used for last is over. */
static ew_err take_slot(struct own *o, struct slot **out)
{
    *out = &o->slots[o->next];
    o->next = (o->next + 1) % SLOTS;
    return ew_cuda_check(o->cuda.cu, o->cuda.cu->event_wait((*out)->event), "event_wait");
}

/* Behind a run that is under way: copies to the device on a queue of their own, and from there to
 * their place when the run is over.  `bytes` are the host's; `floats`: they are to be converted. */
static ew_err put_ahead(struct own *o, char *to, const char *from, size_t bytes, bool floats)
{
    struct ew_cuda *be = &o->cuda;
    EW_TRY(open_ahead(o));
    const size_t size = floats ? ew_dtype_size(be->base.info.storage) : 1;
    const size_t unit = floats ? sizeof(float) : 1;
    for (size_t at = 0; at < bytes; at += SLOT_BYTES) {
        const size_t n = bytes - at < SLOT_BYTES ? bytes - at : SLOT_BYTES;
        char *place = to + at / unit * size;
        const struct stage *s = &o->stages[o->next_stage];
        o->next_stage = (o->next_stage + 1) % STAGES;
        TRY(be, event_hold(o->ahead, s->event)); /* until what was there has been taken */
        TRY(be, copy(o->ahead, s->device, from + at, n, EW_CUDA_TO_DEVICE));
        TRY(be, event_record(o->ahead, s->event));
        TRY(be, event_hold(be->q, s->event));
        if (floats)
            TRY(be, cast(be->q, EW_CUDA_F32, s->device, be->type, place, (int64_t)(n / unit)));
        else
            TRY(be, copy(be->q, place, s->device, n, EW_CUDA_ON_DEVICE));
        TRY(be, event_record(be->q, s->event));
    }
    return EW_OK;
}

static bool goes_ahead(const struct own *o, const void *from, size_t bytes)
{
    return o->running && bytes >= AHEAD_BYTES && is_pinned(o, from);
}

static ew_err put(struct ew_memory *m, size_t offset, const void *from, size_t bytes)
{
    struct own *o = own_of(m);
    struct ew_cuda *be = &o->cuda;
    char *to = ((struct block *)m)->data + offset;
    if (goes_ahead(o, from, bytes))
        return put_ahead(o, to, from, bytes, false);
    if (is_pinned(o, from)) {
        TRY(be, copy(be->q, to, from, bytes, EW_CUDA_TO_DEVICE));
        return EW_OK;
    }
    for (size_t at = 0; at < bytes; at += SLOT_BYTES) {
        const size_t n = bytes - at < SLOT_BYTES ? bytes - at : SLOT_BYTES;
        struct slot *s;
        EW_TRY(take_slot(o, &s));
        memcpy(s->host, (const char *)from + at, n);
        TRY(be, copy(be->q, to + at, s->host, n, EW_CUDA_TO_DEVICE));
        TRY(be, event_record(be->q, s->event));
    }
    return EW_OK;
}

static ew_err get(struct ew_memory *m, size_t offset, void *to, size_t bytes)
{
    struct own *o = own_of(m);
    struct ew_cuda *be = &o->cuda;
    const char *from = ((struct block *)m)->data + offset;
    if (is_pinned(o, to)) {
        TRY(be, copy(be->q, to, from, bytes, EW_CUDA_TO_HOST));
        return EW_OK;
    }
    for (size_t at = 0; at < bytes; at += SLOT_BYTES) {
        const size_t n = bytes - at < SLOT_BYTES ? bytes - at : SLOT_BYTES;
        struct slot *s;
        EW_TRY(take_slot(o, &s));
        TRY(be, copy(be->q, s->host, from + at, n, EW_CUDA_TO_HOST));
        TRY(be, queue_wait(be->q));
        memcpy((char *)to + at, s->host, n);
    }
    return EW_OK;
}

static ew_err put_floats(struct ew_memory *m, size_t offset, const float *from, size_t n)
{
    struct own *o = own_of(m);
    struct ew_cuda *be = &o->cuda;
    const size_t most = SLOT_BYTES / sizeof(float), bytes = ew_dtype_size(be->base.info.storage);
    const bool pinned = is_pinned(o, from);
    char *to = ((struct block *)m)->data + offset;
    if (goes_ahead(o, from, n * sizeof(float)))
        return put_ahead(o, to, (const char *)from, n * sizeof(float), true);
    for (size_t at = 0; at < n; at += most) {
        const size_t count = n - at < most ? n - at : most;
        struct slot *s;
        EW_TRY(take_slot(o, &s));
        if (!pinned)
            memcpy(s->host, from + at, count * sizeof(float));
        TRY(be, copy(be->q, s->device, pinned ? (const void *)(from + at) : s->host,
                     count * sizeof(float), EW_CUDA_TO_DEVICE));
        TRY(be, cast(be->q, EW_CUDA_F32, s->device, be->type, to + at * bytes, (int64_t)count));
        TRY(be, event_record(be->q, s->event));
    }
    return EW_OK;
}

static ew_err get_floats(struct ew_memory *m, size_t offset, float *to, size_t n)
{
    struct own *o = own_of(m);
    struct ew_cuda *be = &o->cuda;
    const size_t most = SLOT_BYTES / sizeof(float), bytes = ew_dtype_size(be->base.info.storage);
    const bool pinned = is_pinned(o, to);
    const char *from = ((struct block *)m)->data + offset;
    for (size_t at = 0; at < n; at += most) {
        const size_t count = n - at < most ? n - at : most;
        struct slot *s;
        EW_TRY(take_slot(o, &s));
        TRY(be, cast(be->q, be->type, from + at * bytes, EW_CUDA_F32, s->device, (int64_t)count));
        TRY(be, copy(be->q, pinned ? (void *)(to + at) : s->host, s->device, count * sizeof(float),
                     EW_CUDA_TO_HOST));
        if (pinned) {
            TRY(be, event_record(be->q, s->event));
            continue;
        }
        TRY(be, queue_wait(be->q));
        memcpy(to + at, s->host, count * sizeof(float));
    }
    return EW_OK;
}

static ew_err fill(struct ew_memory *m, size_t offset, int byte, size_t bytes)
{
    struct ew_cuda *be = &own_of(m)->cuda;
    return ew_cuda_check(
        be->cu, be->cu->fill(be->q, ((struct block *)m)->data + offset, byte, bytes), "fill");
}

static void *address(struct ew_memory *m, size_t offset)
{
    return ((struct block *)m)->data + offset;
}

/* ---- Programs ---- */

/* The first run starts each kernel by itself: libraries load their own then, and kernels read what
 * they need of constants.  The second is captured, and all others repeat that.  What other threads
 * do with the card at that moment can make a capture fail: then the run is one like the first, and
 * the next one tries again, CAPTURES times. */
#define CAPTURES 4

struct list {
    struct ew_program base;
    bool warm;
    void *graph;
    int failed; /* captures */
    struct ew_cuda_updates *updates;
    struct ew_cuda_whole *whole; /* that its first commands are; NULL: each is by itself */
    int n;
    struct ew_command commands[];
};

static void unload(struct ew_program *p)
{
    struct list *l = (struct list *)p;
    ew_cuda(p->be)->cu->graph_free(l->graph);
    ew_cuda_updates_free(&((struct own *)p->be)->cuda, l->updates);
    ew_cuda_whole_free(&((struct own *)p->be)->cuda, l->whole);
    free(l);
}

static ew_err load(struct ew_backend *be, const struct ew_command *commands, int n,
                   struct ew_program **out)
{
    struct list *l = malloc(sizeof(*l) + (size_t)n * sizeof(*commands));
    EW_CHECK(l, EW_ERR_MEMORY, "no memory for %d steps", n);
    *l = (struct list){.base.be = be, .n = n};
    memcpy(l->commands, commands, (size_t)n * sizeof(*commands));
    struct ew_cuda *cuda = &((struct own *)be)->cuda;
    ew_err e = ew_cuda_updates_new(cuda, commands, n, &l->updates);
    if (e == EW_OK)
        e = ew_cuda_whole_new(cuda, commands, n, &l->whole);
    if (e != EW_OK)
        unload(&l->base);
    else
        *out = &l->base;
    return e;
}

static ew_err start_one(struct ew_cuda *be, const struct list *l, int k)
{
    const struct ew_command *c = &l->commands[k];
    be->node = c->node;
    be->update = ew_cuda_update_at(l->updates, k);
    return ew_fail_in(c->kernel->run(c->call), "node %s", c->call->name);
}

static ew_err start_all(struct ew_cuda *be, const struct list *l)
{
    if (l->whole)
        EW_TRY(ew_cuda_whole_start(be, l->whole));
    for (int k = ew_cuda_whole_end(l->whole); k < l->n; k++)
        EW_TRY(start_one(be, l, k));
    return EW_OK;
}

static ew_err capture(struct ew_cuda *be, struct list *l)
{
    void *graph = NULL;
    TRY(be, capture_begin(be->q));
    const ew_err e = start_all(be, l);
    const int status = be->cu->capture_end(be->q, &graph);
    EW_TRY(e);
    EW_TRY(ew_cuda_check(be->cu, status, "capture_end"));
    l->graph = graph;
    return EW_OK;
}

/* Every command by itself, between two events each. */
static ew_err run_timed(struct ew_cuda *be, const struct list *l, int64_t *ns)
{
    void **events = calloc((size_t)l->n + 1, sizeof(*events));
    EW_CHECK(events, EW_ERR_MEMORY, "no memory for %d events", l->n);
    int status = 0;
    ew_err e = EW_OK;
    for (int k = 0; k <= l->n && !status; k++)
        status = be->cu->event_new(1, &events[k]);
    for (int k = 0; k <= l->n && !status && e == EW_OK; k++) {
        status = be->cu->event_record(be->q, events[k]);
        e = k < l->n && !status ? start_one(be, l, k) : EW_OK;
    }
    status = status ? status : be->cu->queue_wait(be->q);
    for (int k = 0; k < l->n && !status && e == EW_OK; k++) {
        float ms = 0;
        status = be->cu->event_ms(events[k], events[k + 1], &ms);
        ns[k] = (int64_t)(ms * 1e6f);
    }
    for (int k = 0; k <= l->n; k++)
        be->cu->event_free(events[k]);
    free(events);
    return e != EW_OK ? e : ew_cuda_check(be->cu, status, "timing");
}

static struct ew_cuda_rates rates_of(const struct ew_run_params *params)
{
    const struct ew_optimizer *o = params->optimizer;
    struct ew_cuda_rates r = {.key = params->key, .scaled = o != NULL};
    if (!o)
        return r;
    const double t = (double)(o->step + 1);
    r.lr = o->lr;
    r.momentum = o->momentum;
    r.weight_decay = o->weight_decay;
    r.beta1 = o->beta1;
    r.beta2 = o->beta2;
    r.eps = o->eps;
    r.bias1 = 1 - pow(o->beta1, t);
    r.bias2 = 1 - pow(o->beta2, t);
    return r;
}

static ew_err run(struct ew_program *p, const struct ew_run_params *params, int64_t *ns)
{
    struct list *l = (struct list *)p;
    struct ew_cuda *be = &((struct own *)p->be)->cuda;
    const struct ew_cuda_rates rates = rates_of(params);
    TRY(be, set_rates(be->q, be->rates, &rates));
    ((struct own *)p->be)->running = true;
    if (ns)
        return run_timed(be, l, ns);
    if (!l->warm) {
        l->warm = true;
        return start_all(be, l);
    }
    if (!l->graph && l->failed < CAPTURES)
        l->failed += capture(be, l) != EW_OK;
    if (!l->graph)
        return start_all(be, l);
    return ew_cuda_check(be->cu, be->cu->graph_launch(be->q, l->graph), "graph_launch");
}

static ew_err loss_scale(struct ew_backend *b, struct ew_loss_scale *v, bool set)
{
    struct ew_cuda *be = &((struct own *)b)->cuda;
    struct ew_cuda_scale s = {.scale = (float)v->scale, .good = (int)v->good};
    if (!be->scale)
        return EW_OK;
    TRY(be, queue_wait(be->q));
    if (set)
        TRY(be, copy(be->q, be->scale, &s, sizeof(s), EW_CUDA_TO_DEVICE));
    else
        TRY(be, copy(be->q, &s, be->scale, sizeof(s), EW_CUDA_TO_HOST));
    TRY(be, queue_wait(be->q));
    *v = (struct ew_loss_scale){.scale = (double)s.scale, .good = s.good};
    return EW_OK;
}

static ew_err sync(struct ew_backend *be)
{
    ((struct own *)be)->running = false;
    return ew_cuda_check(ew_cuda(be)->cu, ew_cuda(be)->cu->queue_wait(ew_cuda(be)->q), "run");
}

/* ---- Moments ---- */

static ew_err mark(struct ew_backend *be, int moment)
{
    struct own *o = (struct own *)be;
    o->last = moment;
    return ew_cuda_check(o->cuda.cu, o->cuda.cu->event_record(o->cuda.q, o->moments[moment]),
                         "mark");
}

static ew_err reach(struct ew_backend *be, int moment)
{
    struct own *o = (struct own *)be;
    o->running = o->running && moment != o->last;
    return ew_cuda_check(o->cuda.cu, o->cuda.cu->event_wait(o->moments[moment]), "run");
}

static ew_err between(struct ew_backend *be, int from, int to, int64_t *ns)
{
    const struct own *o = (const struct own *)be;
    float ms = 0;
    EW_TRY(ew_cuda_check(o->cuda.cu, o->cuda.cu->event_ms(o->moments[from], o->moments[to], &ms),
                         "time"));
    *ns = (int64_t)((double)ms * 1e6);
    return EW_OK;
}

const struct ew_backend_type ew_cuda_type = {.name = "cuda",
                                             .help = "NVIDIA GPUs",
                                             .find = find,
                                             .open = open_cuda,
                                             .close = close_cuda,
                                             .alloc = alloc,
                                             .free = release,
                                             .write = put,
                                             .read = get,
                                             .fill = fill,
                                             .peaks = ew_cuda_peaks,
                                             .host_alloc = alloc_pinned,
                                             .host_free = free_pinned,
                                             .write_floats = put_floats,
                                             .read_floats = get_floats,
                                             .address = address,
                                             .offer = ew_cuda_offer_all,
                                             .task = ew_cuda_task,
                                             .load = load,
                                             .unload = unload,
                                             .run = run,
                                             .loss_scale = loss_scale,
                                             .sync = sync,
                                             .mark = mark,
                                             .reach = reach,
                                             .between = between};
