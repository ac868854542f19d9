/* SPDX-License-Identifier: Apache-2.0 */
/* Greedy placement of buffers. */
#include "plan/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int ew_memory_by_rank(const void *a, const void *b)
{
    const struct ew_ranked *x = a, *y = b;
    const double p[] = {x->key, x->then, y->b->first}, q[] = {y->key, y->then, x->b->first};
    for (int i = 0; i < 3; i++)
        if (p[i] < q[i] || p[i] > q[i])
            return p[i] > q[i] ? -1 : 1;
    return x->b < y->b ? -1 : x->b > y->b; /* deterministic */
}

enum order { BY_SIZE, BY_AREA, BY_LIFE, ORDERS };

static void sort(struct ew_ranked *r, struct ew_buffer *buffers, int n, enum order order)
{
    for (int i = 0; i < n; i++) {
        struct ew_buffer *b = &buffers[i];
        const double size = (double)b->size, life = (double)b->last - b->first + 1;
        const struct ew_ranked ranks[] = {
            [BY_SIZE] = {size, 0, b}, [BY_AREA] = {size * life, 0, b}, [BY_LIFE] = {life, size, b}};
        r[i] = ranks[order];
    }
    qsort(r, (size_t)n, sizeof(*r), ew_memory_by_rank);
}

/* The lowest offset where `b` fits between those of the n placed buffers (sorted by offset) whose
 * lifetimes overlap its own. */
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

/* Inserts `b` into the placed buffers, after those of the same offset. */
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

/* Places all buffers in the given order; returns the size of the arena. */
static size_t place(const struct ew_ranked *order, struct ew_buffer **placed, int n,
                    int64_t *probes)
{
    size_t total = 0;
    for (int i = 0; i < n; i++) {
        struct ew_buffer *b = order[i].b;
        b->offset = lowest_gap(placed, i, b, probes);
        insert(placed, i, b);
        const size_t end = b->offset + ew_align_up(b->size);
        total = end > total ? end : total;
    }
    return total;
}

/* Tries the three orders and keeps the one with the smallest arena. */
static ew_err place_best(struct ew_buffer *buffers, int n, size_t *total, int64_t *probes)
{
    EW_CLEANUP(ew_free_ptr) struct ew_ranked *ranked = calloc((size_t)n + 1, sizeof(*ranked));
    EW_CLEANUP(ew_free_ptr) struct ew_buffer **placed = calloc((size_t)n + 1, sizeof(*placed));
    EW_CHECK(ranked && placed, EW_ERR_MEMORY, "no memory to plan %d buffers", n);
    size_t least = SIZE_MAX;
    enum order best = BY_SIZE;
    for (enum order k = 0; k < ORDERS; k++) {
        sort(ranked, buffers, n, k);
        *total = place(ranked, placed, n, probes);
        if (*total < least) {
            least = *total;
            best = k;
        }
    }
    if (best + 1 == ORDERS) /* the last one tried is in place */
        return EW_OK;
    sort(ranked, buffers, n, best);
    *total = place(ranked, placed, n, probes);
    return EW_OK;
}

ew_err ew_memory_place(struct ew_buffer *buffers, int n, size_t *total, int64_t *probes)
{
    int64_t own = 0;
    int64_t *count = probes ? probes : &own;
    return n <= EW_MEMORY_PAIRWISE_MAX ? place_best(buffers, n, total, count)
                                       : ew_memory_sweep(buffers, n, total, count);
}
