/* SPDX-License-Identifier: Apache-2.0 */
/* Static memory planning: offsets in one arena for buffers with known lifetimes. */
#ifndef EW_PLAN_MEMORY_H
#define EW_PLAN_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ew_buffer {
    size_t size;     /* bytes */
    int first, last; /* lifetime, in steps, inclusive */
    size_t offset;   /* result */
};

/* Gives every buffer an offset (a multiple of EW_ALIGN) such that buffers with overlapping
 * lifetimes do not overlap in memory; *total is the size of the arena.  The optimum is NP-hard
 * (dynamic storage allocation); this is greedy best of three orders, each buffer at the lowest
 * offset that fits, O(n^2).  Beyond EW_MEMORY_PAIRWISE_MAX buffers it is ew_memory_sweep.  *probes,
 * if not NULL, is increased by the number of buffers or gaps examined. */
#define EW_MEMORY_PAIRWISE_MAX 8192 /* takes a tenth of a second */
ew_err ew_memory_place(struct ew_buffer *buffers, int n, size_t *total, int64_t *probes);

/* Sort key of a buffer: larger key first, then larger `then`, then earlier first step. */
struct ew_ranked {
    double key, then;
    struct ew_buffer *b;
};
int ew_memory_by_rank(const void *a, const void *b);

/* The same in the order of the steps, as a heap allocator would do it at run time: O(n log n), for
 * an arena that is a few per cent larger (memory_sweep.c). */
ew_err ew_memory_sweep(struct ew_buffer *buffers, int n, size_t *total, int64_t *probes);

#endif
