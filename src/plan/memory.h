/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers with lifetimes, and their places in one block of memory. */
#ifndef EW_PLAN_MEMORY_H
#define EW_PLAN_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ew_buffer {
    size_t size;     /* bytes */
    int first, last; /* steps that need it, inclusive */
    size_t offset;   /* result */
};

/* Gives every buffer an offset (multiples of EW_ALIGN) such that two that live at the same time do
 * not overlap; *total is the size of the block.  Largest first, each at the lowest place where it
 * fits: a good answer to a problem whose best one is NP-hard, and one that looks at each pair of
 * buffers.  Beyond EW_MEMORY_PAIRWISE_MAX it is ew_memory_sweep's.
 * *probes, where given, grows by the number of buffers or gaps that were looked at. */
#define EW_MEMORY_PAIRWISE_MAX 8192 /* the pairs of so many take a tenth of a second */
ew_err ew_memory_place(struct ew_buffer *buffers, int n, size_t *total, int64_t *probes);

/* An order of buffers: the largest key first, then the largest `then`, then the first step. */
struct ew_ranked {
    double key, then;
    struct ew_buffer *b;
};
int ew_memory_by_rank(const void *a, const void *b);

/* The same in the order of the steps, as a heap would be used: for any number of buffers in
 * n log n, in a block that is some per cent larger (memory_sweep.c). */
ew_err ew_memory_sweep(struct ew_buffer *buffers, int n, size_t *total, int64_t *probes);

#endif
