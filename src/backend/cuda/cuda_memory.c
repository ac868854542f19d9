/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a CUDA device, and transfers.  Pinned host memory is copied directly by DMA, other
 * memory through pinned staging slots.  While a run is in flight, the next run's inputs are copied
 * into device stages on a stream of their own. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda_state.h"
#include "base/mem.h"

#define AHEAD_BYTES ((size_t)128 << 10) /* smallest prefetched copy */

struct block {
    struct ew_memory base;
    char *data;
};

static struct ew_cuda_state *own_of(struct ew_memory *m)
{
    return (struct ew_cuda_state *)m->be;
}

ew_err ew_cuda_alloc(struct ew_backend *be, size_t bytes, struct ew_memory **out)
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

void ew_cuda_release(struct ew_memory *m)
{
    struct block *b = (struct block *)m;
    ew_cuda_forget_casts(ew_cuda(m->be)->casts, b->data, m->bytes);
    ew_cuda(m->be)->cu->release(b->data);
    free(m);
}

/* Opens the stream and the stages for prefetched copies; called when a run is started before the
 * last one has finished. */
static ew_err open_ahead(struct ew_cuda_state *o)
{
    struct ew_cuda *be = &o->cuda;
    if (o->ahead)
        return EW_OK;
    for (int i = 0; i < EW_CUDA_STAGES; i++) {
        if (!o->stages[i].device)
            EW_CUDA_TRY(be->cu, alloc(EW_CUDA_SLOT_BYTES, &o->stages[i].device));
        if (!o->stages[i].event)
            EW_CUDA_TRY(be->cu, event_new(0, &o->stages[i].event));
    }
    EW_CUDA_TRY(be->cu, queue_open(1, 0, 0, &o->ahead));
    return EW_OK;
}

ew_err ew_cuda_alloc_pinned(struct ew_backend *be, size_t bytes, void **out)
{
    struct ew_cuda_state *o = (struct ew_cuda_state *)be;
    EW_TRY(ew_grow((void **)&o->pinned, &o->cap_pinned, o->n_pinned + 1, sizeof(*o->pinned)));
    EW_CUDA_TRY(o->cuda.cu, alloc_host(bytes, out));
    o->pinned[o->n_pinned++] = (struct ew_cuda_pinned){*out, bytes};
    return EW_OK;
}

void ew_cuda_free_pinned(struct ew_backend *be, void *p)
{
    struct ew_cuda_state *o = (struct ew_cuda_state *)be;
    int i = 0;
    while (i < o->n_pinned && o->pinned[i].data != p)
        i++;
    EW_ASSERT(i < o->n_pinned);
    o->pinned[i] = o->pinned[--o->n_pinned];
    o->cuda.cu->release_host(p);
}

static bool is_pinned(const struct ew_cuda_state *o, const void *p)
{
    for (int i = 0; i < o->n_pinned; i++)
        if ((uintptr_t)p - (uintptr_t)o->pinned[i].data < o->pinned[i].bytes)
            return true;
    return false;
}

/* The next slot, once its last transfer is complete. */
static ew_err take_slot(struct ew_cuda_state *o, struct ew_cuda_slot **out)
{
    *out = &o->slots[o->next];
    o->next = (o->next + 1) % EW_CUDA_SLOTS;
    return ew_cuda_check(o->cuda.cu, o->cuda.cu->event_wait((*out)->event), "event_wait");
}

/* Prefetches `bytes` of pinned host memory while a run is in flight: to a stage on the copy stream,
 * then, ordered after the run on the main stream, to its destination.  `floats`: converted from
 * float32 to the storage type. */
static ew_err put_ahead(struct ew_cuda_state *o, char *to, const char *from, size_t bytes,
                        bool floats)
{
    struct ew_cuda *be = &o->cuda;
    EW_TRY(open_ahead(o));
    const size_t size = floats ? ew_dtype_size(be->base.info.storage) : 1;
    const size_t unit = floats ? sizeof(float) : 1;
    for (size_t at = 0; at < bytes; at += EW_CUDA_SLOT_BYTES) {
        const size_t n = bytes - at < EW_CUDA_SLOT_BYTES ? bytes - at : EW_CUDA_SLOT_BYTES;
        char *place = to + at / unit * size;
        const struct ew_cuda_stage *s = &o->stages[o->next_stage];
        o->next_stage = (o->next_stage + 1) % EW_CUDA_STAGES;
        EW_CUDA_TRY(be->cu, event_hold(o->ahead, s->event)); /* until the stage's last contents have
                                                              * been consumed */
        EW_CUDA_TRY(be->cu, copy(o->ahead, s->device, from + at, n, EW_CUDA_TO_DEVICE));
        EW_CUDA_TRY(be->cu, event_record(o->ahead, s->event));
        EW_CUDA_TRY(be->cu, event_hold(be->q, s->event));
        if (floats)
            EW_CUDA_TRY(be->cu,
                        cast(be->q, EW_CUDA_F32, s->device, be->type, place, (int64_t)(n / unit)));
        else
            EW_CUDA_TRY(be->cu, copy(be->q, place, s->device, n, EW_CUDA_ON_DEVICE));
        EW_CUDA_TRY(be->cu, event_record(be->q, s->event));
    }
    return EW_OK;
}

static bool goes_ahead(const struct ew_cuda_state *o, const void *from, size_t bytes)
{
    return o->running && bytes >= AHEAD_BYTES && is_pinned(o, from);
}

ew_err ew_cuda_put(struct ew_memory *m, size_t offset, const void *from, size_t bytes)
{
    struct ew_cuda_state *o = own_of(m);
    struct ew_cuda *be = &o->cuda;
    char *to = ((struct block *)m)->data + offset;
    if (goes_ahead(o, from, bytes))
        return put_ahead(o, to, from, bytes, false);
    if (is_pinned(o, from)) {
        EW_CUDA_TRY(be->cu, copy(be->q, to, from, bytes, EW_CUDA_TO_DEVICE));
        return EW_OK;
    }
    for (size_t at = 0; at < bytes; at += EW_CUDA_SLOT_BYTES) {
        const size_t n = bytes - at < EW_CUDA_SLOT_BYTES ? bytes - at : EW_CUDA_SLOT_BYTES;
        struct ew_cuda_slot *s;
        EW_TRY(take_slot(o, &s));
        memcpy(s->host, (const char *)from + at, n);
        EW_CUDA_TRY(be->cu, copy(be->q, to + at, s->host, n, EW_CUDA_TO_DEVICE));
        EW_CUDA_TRY(be->cu, event_record(be->q, s->event));
    }
    return EW_OK;
}

ew_err ew_cuda_get(struct ew_memory *m, size_t offset, void *to, size_t bytes)
{
    struct ew_cuda_state *o = own_of(m);
    struct ew_cuda *be = &o->cuda;
    const char *from = ((struct block *)m)->data + offset;
    if (is_pinned(o, to)) {
        EW_CUDA_TRY(be->cu, copy(be->q, to, from, bytes, EW_CUDA_TO_HOST));
        return EW_OK;
    }
    for (size_t at = 0; at < bytes; at += EW_CUDA_SLOT_BYTES) {
        const size_t n = bytes - at < EW_CUDA_SLOT_BYTES ? bytes - at : EW_CUDA_SLOT_BYTES;
        struct ew_cuda_slot *s;
        EW_TRY(take_slot(o, &s));
        EW_CUDA_TRY(be->cu, copy(be->q, s->host, from + at, n, EW_CUDA_TO_HOST));
        EW_CUDA_TRY(be->cu, queue_wait(be->q));
        memcpy((char *)to + at, s->host, n);
    }
    return EW_OK;
}

ew_err ew_cuda_put_floats(struct ew_memory *m, size_t offset, const float *from, size_t n)
{
    struct ew_cuda_state *o = own_of(m);
    struct ew_cuda *be = &o->cuda;
    const size_t most = EW_CUDA_SLOT_BYTES / sizeof(float),
                 bytes = ew_dtype_size(be->base.info.storage);
    const bool pinned = is_pinned(o, from);
    char *to = ((struct block *)m)->data + offset;
    if (goes_ahead(o, from, n * sizeof(float)))
        return put_ahead(o, to, (const char *)from, n * sizeof(float), true);
    for (size_t at = 0; at < n; at += most) {
        const size_t count = n - at < most ? n - at : most;
        struct ew_cuda_slot *s;
        EW_TRY(take_slot(o, &s));
        if (!pinned)
            memcpy(s->host, from + at, count * sizeof(float));
        EW_CUDA_TRY(be->cu, copy(be->q, s->device, pinned ? (const void *)(from + at) : s->host,
                                 count * sizeof(float), EW_CUDA_TO_DEVICE));
        EW_CUDA_TRY(be->cu,
                    cast(be->q, EW_CUDA_F32, s->device, be->type, to + at * bytes, (int64_t)count));
        EW_CUDA_TRY(be->cu, event_record(be->q, s->event));
    }
    return EW_OK;
}

ew_err ew_cuda_get_floats(struct ew_memory *m, size_t offset, float *to, size_t n)
{
    struct ew_cuda_state *o = own_of(m);
    struct ew_cuda *be = &o->cuda;
    const size_t most = EW_CUDA_SLOT_BYTES / sizeof(float),
                 bytes = ew_dtype_size(be->base.info.storage);
    const bool pinned = is_pinned(o, to);
    const char *from = ((struct block *)m)->data + offset;
    for (size_t at = 0; at < n; at += most) {
        const size_t count = n - at < most ? n - at : most;
        struct ew_cuda_slot *s;
        EW_TRY(take_slot(o, &s));
        EW_CUDA_TRY(be->cu, cast(be->q, be->type, from + at * bytes, EW_CUDA_F32, s->device,
                                 (int64_t)count));
        EW_CUDA_TRY(be->cu, copy(be->q, pinned ? (void *)(to + at) : s->host, s->device,
                                 count * sizeof(float), EW_CUDA_TO_HOST));
        if (pinned) {
            EW_CUDA_TRY(be->cu, event_record(be->q, s->event));
            continue;
        }
        EW_CUDA_TRY(be->cu, queue_wait(be->q));
        memcpy(to + at, s->host, count * sizeof(float));
    }
    return EW_OK;
}

ew_err ew_cuda_fill(struct ew_memory *m, size_t offset, int byte, size_t bytes)
{
    struct ew_cuda *be = &own_of(m)->cuda;
    return ew_cuda_check(
        be->cu, be->cu->fill(be->q, ((struct block *)m)->data + offset, byte, bytes), "fill");
}

void *ew_cuda_address(struct ew_memory *m, size_t offset)
{
    return ((struct block *)m)->data + offset;
}
