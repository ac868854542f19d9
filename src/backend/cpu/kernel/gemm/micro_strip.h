/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel for many rows with constant strides in a and in c, and one block of weights,
 * which stays in L1.  The overhead of a call of micro_direct is a fifth of its FMAs at k = 32; here
 * it is paid once for all rows. */
#ifndef EW_BACKEND_CPU_KERNEL_GEMM_MICRO_STRIP_H
#define EW_BACKEND_CPU_KERNEL_GEMM_MICRO_STRIP_H

#include "backend/cpu/kernel/gemm/micro.h"

/* An odd number of half vectors would leave half of the last one empty.  Such a last block, of 8 or
 * 24 outputs, is packed in pairs along k instead, [line][k / 2][packed_width][2], an odd k with
 * zeros: accumulators hold the sums of even and odd k side by side and are added at the end. */
#define PAIRS (HALF > 0)

INLINE bool paired_width(int64_t n)
{
    return PAIRS && n <= NR && packed_width(n) / PIECE % 2 == 1;
}

struct micro_strip {
    const float *a; /* row r at r * row_step; k runs over `lines` pieces of kc, line_step apart */
    int64_t row_step, lines, line_step;
    const float *w;           /* [lines * kc][vectors * LANES] */
    int64_t kc, most;         /* most rows at once; 0: as many as fit the registers */
    const float *from, *bias; /* as in micro; `from` has the strides of c */
    float *c;                 /* row r at r * c_step */
    int64_t c_step, rows, width;
    float lo, hi;
    bool pairs;        /* w is packed in pairs */
    enum ew_act act;   /* instead of the clamp, see below; EW_ACT_NONE: none */
    const float *soon; /* weights to prefetch into L2, as many as in w; NULL: none */
};

/* Any number of rows.  Each sum is accumulated in the order of k, as in micro.  Returns the number
 * of rows, counted from the first, to which `act` has been applied; the others have their sums. */
int64_t EW_K(micro_strip)(const struct micro_strip *m);

#endif
