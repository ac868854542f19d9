/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel: MR rows x NV vectors of sums held in registers while one panel of inputs and
 * one block of packed weights pass by.  All convolutions and matrix products end here; what the
 * rows and vectors mean is left to the callers.
 *
 *                 w: [k][NV * LANES], streamed from L2
 *                 | | | | | | | |
 *   a: [MR][KS]   +-------------+        sums[r][v] += a[r][k] * w[k][v]
 *   row r  ------ |  registers  |
 *   in L1  ------ |             |
 *                 +-------------+
 *
 * Rows of the panel lie at a fixed distance KS, so that every broadcast is one pointer plus a
 * constant.  KS is KC and one cache line more: at exactly 1 KiB the rows would share cache sets.
 * MR x NV: as many sums as there are registers left beside NV weights and one broadcast.  With 14 x
 * 2 (AVX-512) a step of k is 16 loads for 28 multiply-adds.
 * AVX2 has 16 registers: 12 rows are two passes of 6 x 2 (8 loads for 12 multiply-adds), of which
 * the second finds its weights in L1; or three of 4 x 3 (7 for 12) where the last 17 to 24 outputs
 * are one block; or one of 12 x 1, for fewer than 8 sums would wait for each other. A last half of
 * a vector is one of its own with AVX-512: 24 outputs then take 1.5 vectors, which cores that split
 * 512 bits in two (Zen 4) do in 1.5 times the time of one. KC: a panel of 14 x 256 floats takes 14
 * KiB of a 32 KiB L1. */
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
#define NR_LAST (NV_LAST * LANES) /* at most, of the last one */
#define PIECE   (HALF ? HALF : LANES)
#define KC      256
#define KS      (KC + 16)
#define LINE    16 /* floats in a cache line */

/* Of a step of 12 multiply-adds counters and fetches are a quarter of the instructions: too many
 * for processors that start four at a time. */
#if defined(EW_ISA_IS_avx2) && defined(__clang__)
#define TWO_STEPS _Pragma("clang loop unroll_count(2)")
#elif defined(EW_ISA_IS_avx2)
#define TWO_STEPS _Pragma("GCC unroll 2")
#else
#define TWO_STEPS
#endif

/* Operands of one piece of a sum. */
struct micro_span {
    const float *a, *w;
};

/* Memory that will be needed soon: `step` floats of it are fetched into L2 with each k. */
struct micro_soon {
    const float *at; /* NULL: nothing */
    int64_t step;
};

struct micro {
    const float *a;                     /* the panel [rows][KS] */
    const float *w;                     /* [kc][vectors * LANES] */
    const float *prefetch;              /* fetched into L2, a line with each k; NULL: nothing */
    int64_t row_step, lines, line_step; /* micro_direct only */
    const struct micro_span *span;      /* micro_spans only: [lines], in place of a and w */
    struct micro_soon next[2];          /* micro_spans_next only */
    int64_t kc;                         /* 0 is fine */
    const float *from;                  /* sums start with from[row[r] + i]; NULL: zero */
    const float *bias;                  /* and with bias[i]; NULL: without */
    float *c;                           /* c[row[r] + i] = clamp(sum) */
    const int64_t *row;                 /* [rows] */
    int64_t width;                      /* outputs, 1 to NR_LAST: what exists of c, from, bias */
    float lo, hi;                       /* -inf, inf: no clamping */
    float *stats; /* micro and micro_direct only: a split's, see norm_stats.h, of c's columns; NULL:
                     none */
    int64_t stats_step;
    bool begins; /* the split */
};

/* Floats that a row of n outputs takes when packed: blocks of NR, the last of them in whole pieces.
 */
INLINE int64_t packed_width(int64_t n)
{
    return div_up(n, PIECE) * PIECE;
}

/* Blocks of n outputs, and outputs of block b: the last takes up to NR_LAST. */
INLINE int64_t block_count(int64_t n)
{
    return n > NR ? div_up(n - (NR_LAST - NR), NR) : min_i64(n, 1);
}

INLINE int64_t block_width(int64_t n, int64_t b)
{
    return n - b * NR > NR_LAST ? NR : n - b * NR;
}

/* rows in [1, MR].  Each sum is added up in the order of k whatever the rows beside it: results do
 * not depend on how an output is cut into tiles. */
void EW_K(micro)(const struct micro *m, int rows);

/* The same where rows need no gathering, for they lie at one distance from each other: row r of a
 * is at r * row_step, and k runs over `lines` pieces of kc that are line_step apart. */
void EW_K(micro_direct)(const struct micro *m, int rows);

/* The same sums over pixels, for gradients of filters: a is [kc][MR], w [kc][KS]. */
void EW_K(micro_outer)(const struct micro *m, int rows);

/* The same where nothing has been laid out: row_step floats between pixels of a, line_step between
 * those of w, of which whole pieces are read. */
void EW_K(micro_outer_direct)(const struct micro *m, int rows);

/* The same over `lines` spans of kc pixels each: a is [kc][MR], pixels of w lie line_step floats
 * apart. */
void EW_K(micro_spans)(const struct micro *m, int rows);

/* The same, fetching next[] meanwhile: evenly, for a burst of fetches before a product holds it up.
 */
void EW_K(micro_spans_next)(const struct micro *m, int rows);

#endif
