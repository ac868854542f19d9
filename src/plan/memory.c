/* SPDX-License-Identifier: Apache-2.0 */
/* Placing buffers. */
#include "plan/memory.h"

#include <stdlib.h>

#include "base/mem.h"

static int by_size(const void *a, const void *b)
{
    const struct ew_buffer *x = *(struct ew_buffer *const *)a, *y = *(struct ew_buffer *const *)b;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y; /* a total order: the same plan every time */
}

static int by_offset(const void *a, const void *b)
{
    const struct ew_buffer *x = *(struct ew_buffer *const *)a, *y = *(struct ew_buffer *const *)b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* The lowest gap among `busy` (sorted by offset) that holds `size` bytes. */
static size_t lowest_gap(struct ew_buffer *const *busy, int n, size_t size)
{
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        if (busy[i]->offset >= at && busy[i]->offset - at >= size)
            return at;
        const size_t end = busy[i]->offset + ew_align_up(busy[i]->size);
        at = end > at ? end : at;
    }
    return at;
}

ew_err ew_memory_place(struct ew_buffer *buffers, int n, size_t *total)
{
    *total = 0;
    EW_CLEANUP(ew_free_ptr) struct ew_buffer **order = calloc((size_t)n + 1, sizeof(*order));
    EW_CLEANUP(ew_free_ptr) struct ew_buffer **busy = calloc((size_t)n + 1, sizeof(*busy));
    EW_CHECK(order && busy, EW_ERR_MEMORY, "no memory to plan %d buffers", n);
    for (int i = 0; i < n; i++)
        order[i] = &buffers[i];
    qsort(order, (size_t)n, sizeof(*order), by_size);
    for (int i = 0; i < n; i++) {
        struct ew_buffer *b = order[i];
        int n_busy = 0;
        for (int j = 0; j < i; j++)
            if (order[j]->first <= b->last && b->first <= order[j]->last)
                busy[n_busy++] = order[j];
        qsort(busy, (size_t)n_busy, sizeof(*busy), by_offset);
        b->offset = lowest_gap(busy, n_busy, ew_align_up(b->size));
        const size_t end = b->offset + ew_align_up(b->size);
        *total = end > *total ? end : *total;
    }
    return EW_OK;
}
