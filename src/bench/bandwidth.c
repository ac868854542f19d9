/* SPDX-License-Identifier: Apache-2.0 */
/* Memory read bandwidth. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/pool.h"
#include "bench/bench.h"

#define BYTES  ((size_t)256 << 20) /* several times the last-level cache */
#define PASSES 5
#define LINE   64

typedef double lanes __attribute__((vector_size(LINE)));

struct reading {
    const lanes *at;
    lanes *sums; /* one per worker: keeps the reads from being optimised away */
};

static void read_part(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct reading *r = ctx;
    lanes a = {0}, b = {0}, c = {0}, d = {0};
    for (int64_t i = begin; i + 4 <= end; i += 4) {
        a += r->at[i];
        b += r->at[i + 1];
        c += r->at[i + 2];
        d += r->at[i + 3];
    }
    r->sums[worker] += a + b + c + d;
}

ew_err ew_bench_bandwidth(int threads, double *bytes_s)
{
    struct ew_pool *pool;
    EW_TRY(ew_pool_new(threads, &pool));
    const int n = ew_pool_threads(pool);
    EW_CLEANUP(ew_free_ptr) void *block = aligned_alloc(LINE, BYTES);
    EW_CLEANUP(ew_free_ptr) lanes *sums = aligned_alloc(LINE, (size_t)n * sizeof(*sums));
    int64_t least = 0;
    if (block && sums) {
        struct reading r = {.at = block, .sums = sums};
        memset(block, 0, BYTES);
        memset(sums, 0, (size_t)n * sizeof(*sums));
        for (int i = 0; i < PASSES; i++) {
            const int64_t start = ew_clock_ns();
            ew_pool_run(pool, (int64_t)(BYTES / LINE), read_part, &r);
            const int64_t ns = ew_clock_ns() - start;
            least = i == 0 || ns < least ? ns : least;
        }
    }
    ew_pool_free(pool);
    EW_CHECK(least > 0, EW_ERR_MEMORY, "no memory to measure the bandwidth with");
    *bytes_s = (double)BYTES / ((double)least * 1e-9);
    return EW_OK;
}
