/* SPDX-License-Identifier: Apache-2.0 */
/* Placing buffers. */
#include "plan/memory.h"

#include <stdlib.h>

#include "base/mem.h"

static int total_order(const struct ew_buffer *x, const struct ew_buffer *y)
{
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y; /* the same plan every time */
}

static int by_size(const void *a, const void *b)
{
    const struct ew_buffer *x = *(struct ew_buffer *const *)a, *y = *(struct ew_buffer *const *)b;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return total_order(x, y);
}

/* Size times steps. */
static int by_area(const void *a, const void *b)
{
    const struct ew_buffer *x = *(struct ew_buffer *const *)a, *y = *(struct ew_buffer *const *)b;
    const double p = (double)x->size * ((double)x->last - x->first + 1);
    const double q = (double)y->size * ((double)y->last - y->first + 1);
    if (p < q || p > q)
        return p > q ? -1 : 1;
    return total_order(x, y);
}

static int by_life(const void *a, const void *b)
{
    const struct ew_buffer *x = *(struct ew_buffer *const *)a, *y = *(struct ew_buffer *const *)b;
    const int64_t p = (int64_t)x->last - x->first, q = (int64_t)y->last - y->first;
    if (p != q)
        return p > q ? -1 : 1;
    return by_size(a, b);
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

/* Each in its order to the lowest gap; returns what that takes. */
static size_t place(struct ew_buffer **order, struct ew_buffer **busy, int n)
{
    size_t total = 0;
    for (int i = 0; i < n; i++) {
        struct ew_buffer *b = order[i];
        int n_busy = 0;
        for (int j = 0; j < i; j++)
            if (order[j]->first <= b->last && b->first <= order[j]->last)
                busy[n_busy++] = order[j];
        qsort(busy, (size_t)n_busy, sizeof(*busy), by_offset);
        b->offset = lowest_gap(busy, n_busy, ew_align_up(b->size));
        const size_t end = b->offset + ew_align_up(b->size);
        total = end > total ? end : total;
    }
    return total;
}

/* No order is best for all: of three the one that takes the least is used. */
ew_err ew_memory_place(struct ew_buffer *buffers, int n, size_t *total)
{
    int (*const orders[])(const void *, const void *) = {by_size, by_area, by_life};
    EW_CLEANUP(ew_free_ptr) struct ew_buffer **order = calloc((size_t)n + 1, sizeof(*order));
    EW_CLEANUP(ew_free_ptr) struct ew_buffer **busy = calloc((size_t)n + 1, sizeof(*busy));
    EW_CHECK(order && busy, EW_ERR_MEMORY, "no memory to plan %d buffers", n);
    for (int i = 0; i < n; i++)
        order[i] = &buffers[i];
    size_t best = 0;
    for (size_t k = 1; k < EW_COUNT(orders); k++) {
        qsort(order, (size_t)n, sizeof(*order), orders[k]);
        const size_t now = place(order, busy, n);
        qsort(order, (size_t)n, sizeof(*order), orders[best]);
        if (now < place(order, busy, n))
            best = k;
    }
    qsort(order, (size_t)n, sizeof(*order), orders[best]);
    *total = place(order, busy, n);
    return EW_OK;
}
