/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool: one loop at a time.
 *
 * Thread r of T begins with [n * r / T, n * (r + 1) / T), part by part; who has finished takes
 * parts that another has not begun.  A loop's result may not depend on where the parts are cut or
 * on who does them: sums over the whole loop go through one slot per index (or per fixed block of
 * indices), added up afterwards in order.  Then any number of threads gives the same bits.  Loops
 * take denormal numbers as zeros (base/flush.h), whoever does them. */
#ifndef EW_BASE_POOL_H
#define EW_BASE_POOL_H

#include <stdint.h>

#include "base/err.h"

struct ew_pool;

/* Does the indices [begin, end).  `worker` is in [0, threads) and differs between parts that run at
 * the same time: it picks scratch memory. */
typedef void ew_pool_fn(void *ctx, int64_t begin, int64_t end, int worker);

/* Threads the process may run on. */
int ew_pool_cpus(void);

/* `threads` counts the caller; 0: as many as there are CPUs.  Fails where the system gives no
 * thread. */
ew_err ew_pool_new(int threads, struct ew_pool **out);

/* Ends and joins the threads; NULL is fine. */
void ew_pool_free(struct ew_pool *p);

/* 1 for NULL, which is a pool too: the caller alone. */
int ew_pool_threads(const struct ew_pool *p);

/* Runs fn over [0, n) and returns when all of it is done; what the caller wrote before is seen by
 * all, what they wrote is seen by the caller.  Where the pool is busy (a loop within a loop, a
 * second caller) the caller does the whole range itself, as worker 0.  Allocates nothing. */
void ew_pool_run(struct ew_pool *p, int64_t n, ew_pool_fn *fn, void *ctx);

#endif
