/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel: MR rows x NV vectors of accumulators in registers, over one panel of inputs and
 * one block of packed weights.  Callers define the meaning of rows and columns.
 *
 *                 w: [k][NV * LANES], streamed from L2
 *                 | | | | | | | |
 *   a: [MR][KS]   +-------------+        sums[r][v] += a[r][k] * w[k][v]
 *   row r  ------ |  registers  |
 *   in L1  ------ |             |
 *                 +-------------+
 *
 * Rows of the panel have the fixed stride KS, so that every broadcast is one pointer plus a
 * constant.  KS is KC plus one cache line: with a stride of 1 KiB the rows would share sets of L1.
 * MR x NV: as many accumulators as registers remain beside NV weights and one broadcast.  With 14 x
 * 2 (AVX-512) a step of k is 16 loads for 28 FMAs.  AVX2 has 16 registers: 12 rows are two passes
 * of 6 x 2 (8 loads for 12 FMAs), of which the second finds its weights in L1; or three of 4 x 3 (7
 * loads for 12 FMAs) for a last block of 17 to 24 outputs; or one of 12 x 1, since fewer than 8
 * accumulators do not hide the latency.  With AVX-512 a last half vector is used as such: 24
 * outputs take 1.5 vectors, which cores that split 512-bit operations (Zen 4) compute in 1.5 times
 * the time of one.  KC: a panel of 14 x 256 floats takes 14 KiB of a 32 KiB L1. */
#ifndef EW_BACKEND_CPU_KERNEL_GEMM_MICRO_H
#define EW_BACKEND_CPU_KERNEL_GEMM_MICRO_H

#include "backend/cpu/kernel/common/vec.h"

#define NV 2
#if defined(EW_ISA_IS_avx512)
#define MR 14
#elif defined(EW_ISA_IS_avx2)
#define MR      12
#define NV_LAST 3
#elif defined(EW_ISA_IS_neon)
#define MR 8
#else
#define MR 6
#endif
#ifndef NV_LAST
#define NV_LAST NV
#endif
#define NR      (NV * LANES)      /* outputs of a block of packed weights */
#define NR_LAST (NV_LAST * LANES) /* most outputs of the last block */
#define PIECE   (HALF ? HALF : LANES)
#define KC      256
#define KS      (KC + 16)
#define LINE    16 /* floats in a cache line */

/* In a step of 12 FMAs, loop counters and prefetches are a quarter of the instructions: too many
 * for four-wide processors. */
#if defined(EW_ISA_IS_avx2) && defined(__clang__)
#define TWO_STEPS _Pragma("clang loop unroll_count(2)")
#elif defined(EW_ISA_IS_avx2)
#define TWO_STEPS _Pragma("GCC unroll 2")
#else
#define TWO_STEPS
#endif

/* Operands of one piece of k. */
struct micro_span {
    const float *a, *w;
};

/* Memory to prefetch into L2, `step` floats in each step of k. */
struct micro_soon {
    const float *at; /* NULL: nothing */
    int64_t step;
};

struct micro {
    const float *a;                     /* the panel [rows][KS] */
    const float *w;                     /* [kc][vectors * LANES] */
    const float *prefetch;              /* prefetched into L2, one line for each step of k; NULL:
                                         * none */
    int64_t row_step, lines, line_step; /* micro_direct only */
    const struct micro_span *span;      /* micro_spans only: [lines], instead of a and w */
    struct micro_soon next[2];          /* micro_spans_next only */
    int64_t kc;                         /* 0 is fine */
    const float *from;                  /* initial sums from[row[r] + i]; NULL: zero */
    const float *bias;                  /* added to them, bias[i]; NULL: none */
    float *c;                           /* c[row[r] + i] = clamp(sum) */
    const int64_t *row;                 /* [rows] */
    int64_t width;                      /* outputs, 1 to NR_LAST, of c, from and bias */
    float lo, hi;                       /* -inf, inf: no clamping */
    float *stats; /* micro and micro_direct only: statistics of c's columns, a split as in
                   * norm_stats.h; NULL: none */
    int64_t stats_step;
    bool begins; /* the first rows of the split */
};

/* Floats of n packed outputs: blocks of NR, the last rounded up to PIECE. */
INLINE int64_t packed_width(int64_t n)
{
    return div_up(n, PIECE) * PIECE;
}

/* Number of blocks of n outputs, and outputs of block b; the last has up to NR_LAST. */
INLINE int64_t block_count(int64_t n)
{
    return n > NR ? div_up(n - (NR_LAST - NR), NR) : min_i64(n, 1);
}

INLINE int64_t block_width(int64_t n, int64_t b)
{
    return n - b * NR > NR_LAST ? NR : n - b * NR;
}

/* rows in [1, MR].  Each sum is accumulated in the order of k: results do not depend on
 * blocking. */
void EW_K(micro)(const struct micro *m, int rows);

/* The same for rows read in place: row r of a is at r * row_step, and k runs over `lines` pieces of
 * kc, line_step apart. */
void EW_K(micro_direct)(const struct micro *m, int rows);

/* Outer products for wgrad, k runs over pixels: a is [kc][MR], w is [kc][KS]. */
void EW_K(micro_outer)(const struct micro *m, int rows);

/* The same with both operands in place: pixels of a are row_step apart, those of w line_step; w is
 * read in whole pieces. */
void EW_K(micro_outer_direct)(const struct micro *m, int rows);

/* The same over `lines` spans of kc pixels each: a is [kc][MR], pixels of w are line_step apart. */
void EW_K(micro_spans)(const struct micro *m, int rows);

/* The same with prefetches of next[], spread evenly: a burst would stall the FMAs. */
void EW_K(micro_spans_next)(const struct micro *m, int rows);

#endif
