/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool: one parallel loop at a time.
 *
 * Thread r of T starts with [n * r / T, n * (r + 1) / T), chunk by chunk, then steals chunks from
 * others.  A loop's result must not depend on chunk boundaries or on which thread runs a chunk:
 * reductions go through one slot per index (or per fixed block of indices) and are summed
 * afterwards in order, so that any number of threads gives the same bits.  Denormals are flushed to
 * zero (base/flush.h) on all threads. */
#ifndef EW_BASE_POOL_H
#define EW_BASE_POOL_H

#include <stdint.h>

#include "base/err.h"

struct ew_pool;

/* Runs the indices [begin, end).  `worker`, in [0, threads), differs between chunks that run
 * concurrently: it selects scratch memory. */
typedef void ew_pool_fn(void *ctx, int64_t begin, int64_t end, int worker);

/* Number of CPUs available to the process: by its affinity mask and CPU quota. */
int ew_pool_cpus(void);

/* `threads` includes the caller; 0: one for each CPU.  Fails if a thread cannot be created. */
ew_err ew_pool_new(int threads, struct ew_pool **out);

/* Ends and joins the threads; NULL is fine. */
void ew_pool_free(struct ew_pool *p);

/* 1 for NULL, which is a valid pool: the caller alone. */
int ew_pool_threads(const struct ew_pool *p);

/* Runs fn over [0, n) and returns when all is done, with full memory ordering between caller and
 * threads.  If the pool is busy (nested loop, second caller) the caller runs the whole range
 * itself, as worker 0.  Allocates nothing. */
void ew_pool_run(struct ew_pool *p, int64_t n, ew_pool_fn *fn, void *ctx);

#endif
