/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel for many rows at one distance from each other, in a and in c, by one block of
 * weights, which stay in L1 while the rows pass by.  What a call of micro_direct costs beside its
 * products is a fifth of them where k is 32; here it is paid once for all rows. */
#ifndef EW_BACKEND_CPU_KERNEL_GEMM_MICRO_STRIP_H
#define EW_BACKEND_CPU_KERNEL_GEMM_MICRO_STRIP_H

#include "backend/cpu/kernel/gemm/micro.h"

struct micro_strip {
    const float *a; /* row r at r * row_step; k runs over `lines` pieces of kc, line_step apart */
    int64_t row_step, lines, line_step;
    const float *w;           /* [lines * kc][vectors * LANES] */
    int64_t kc, most;         /* rows at once, at most; 0: as many as there are registers for */
    const float *from, *bias; /* as in micro; rows of from are c_step apart, as those of c */
    float *c;                 /* row r at r * c_step */
    int64_t c_step, rows, width;
    float lo, hi;
    const float *soon; /* weights that are fetched into L2 meanwhile, as many as w; NULL: none */
};

/* Any number of rows.  Each sum is added up in the order of k, as in micro. */
void EW_K(micro_strip)(const struct micro_strip *m);

#endif
