/* SPDX-License-Identifier: Apache-2.0 */
/* Placing buffers. */
#include "plan/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

/* The place of `b` among n placed buffers, which are sorted by offset: the lowest gap between those
 * that live at the same time. */
static size_t lowest_gap(struct ew_buffer *const *placed, int n, const struct ew_buffer *b,
                         int64_t *probes)
{
    const size_t size = ew_align_up(b->size);
    size_t at = 0;
    int i = 0;
    for (; i < n; i++) {
        const struct ew_buffer *q = placed[i];
        if (q->first > b->last || b->first > q->last)
            continue;
        if (q->offset >= at && q->offset - at >= size)
            break;
        const size_t end = q->offset + ew_align_up(q->size);
        at = end > at ? end : at;
    }
    *probes += i + 1;
    return at;
}

/* Adds `b` to the n placed ones, after those of the same offset. */
static void insert(struct ew_buffer **placed, int n, struct ew_buffer *b)
{
    int low = 0, high = n;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (placed[middle]->offset <= b->offset)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(&placed[low + 1], &placed[low], (size_t)(n - low) * sizeof(struct ew_buffer *));
    placed[low] = b;
}

/* Each in its order to the lowest gap; returns what that takes. */
static size_t place(struct ew_buffer **order, struct ew_buffer **placed, int n, int64_t *probes)
{
    size_t total = 0;
    for (int i = 0; i < n; i++) {
        struct ew_buffer *b = order[i];
        b->offset = lowest_gap(placed, i, b, probes);
        insert(placed, i, b);
        const size_t end = b->offset + ew_align_up(b->size);
        total = end > total ? end : total;
    }
    return total;
}

/* No order is best for all: of three the one that takes the least is used. */
static ew_err place_best(struct ew_buffer *buffers, int n, size_t *total, int64_t *probes)
{
    int (*const orders[])(const void *, const void *) = {by_size, by_area, by_life};
    EW_CLEANUP(ew_free_ptr) struct ew_buffer **order = calloc((size_t)n + 1, sizeof(*order));
    EW_CLEANUP(ew_free_ptr) struct ew_buffer **placed = calloc((size_t)n + 1, sizeof(*placed));
    EW_CHECK(order && placed, EW_ERR_MEMORY, "no memory to plan %d buffers", n);
    for (int i = 0; i < n; i++)
        order[i] = &buffers[i];
    size_t best = 0, least = SIZE_MAX, now = 0;
    for (size_t k = 0; k < EW_COUNT(orders); k++) {
        qsort(order, (size_t)n, sizeof(*order), orders[k]);
        now = place(order, placed, n, probes);
        if (now < least) {
            least = now;
            best = k;
        }
    }
    if (best + 1 != EW_COUNT(orders)) { /* else it is in place already */
        qsort(order, (size_t)n, sizeof(*order), orders[best]);
        now = place(order, placed, n, probes);
    }
    *total = now;
    return EW_OK;
}

ew_err ew_memory_place(struct ew_buffer *buffers, int n, size_t *total, int64_t *probes)
{
    int64_t own = 0;
    int64_t *count = probes ? probes : &own;
    return n <= EW_MEMORY_PAIRWISE_MAX ? place_best(buffers, n, total, count)
                                       : ew_memory_sweep(buffers, n, total, count);
}
