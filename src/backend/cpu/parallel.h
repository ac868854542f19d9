/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel loops over a kernel's tiles, on the backend's threads, and scratch by thread. */
#ifndef EW_BACKEND_CPU_PARALLEL_H
#define EW_BACKEND_CPU_PARALLEL_H

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "base/mem.h"

/* Scratch for all threads, `bytes` for each. */
static inline size_t ew_thread_scratch_bytes(const struct ew_backend *be, size_t bytes)
{
    return ew_align_up(bytes) * (size_t)ew_pool_threads(ew_cpu(be)->pool);
}

/* One thread's part of such scratch, which begins at `all`. */
static inline void *ew_thread_scratch_at(void *all, size_t bytes, int worker)
{
    return (char *)all + ew_align_up(bytes) * (size_t)worker;
}

/* One thread's part of the call's scratch. */
static inline void *ew_thread_scratch(const struct ew_call *c, size_t bytes, int worker)
{
    return ew_thread_scratch_at(c->scratch, bytes, worker);
}

/* Bytes of n floats, rounded up to cache lines. */
static inline size_t ew_float_bytes(size_t n)
{
    return ew_align_up(n * sizeof(float));
}

/* Runs `fn` over the tiles; its ctx is the call. */
static inline void ew_parallel_for(const struct ew_call *c, int64_t tiles, ew_pool_fn *fn)
{
    struct ew_call copy = *c;
    ew_pool_run(ew_cpu(c->be)->pool, tiles, fn, &copy);
}

#define EW_PARALLEL_GRAIN 8192 /* elements of a tile of an element-wise kernel */

static inline int64_t ew_parallel_grains(int64_t elements)
{
    return (elements + EW_PARALLEL_GRAIN - 1) / EW_PARALLEL_GRAIN;
}

/* For kernels with a fixed cost per range (scratch to clear, filters to transform): threads run
 * ranges of tiles, one or at most two for each thread, and two only if each then has two tiles or
 * more. */
static inline int64_t ew_parallel_ranges(const struct ew_backend *be, int64_t tiles)
{
    const int64_t threads = ew_pool_threads(ew_cpu(be)->pool);
    const int64_t most = ew_max_i64(threads, ew_min_i64(2 * threads, tiles / 2));
    return ew_min_i64(tiles, most);
}

/* The first tile of a range. */
static inline int64_t ew_parallel_range_tile(const struct ew_backend *be, int64_t tiles,
                                             int64_t range)
{
    return tiles * range / ew_parallel_ranges(be, tiles);
}

#endif
