/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit multiply-adds on registers alone: the peak that integer kernels are measured against. */
#include "backend/cpu/kernel/qvec.h"

#define SUMS 12 /* as k_peak.c */

int64_t EW_K(qpeak)(int64_t steps, int32_t *sink)
{
    vint sum[SUMS];
    const vint x = splat_word(sink), y = x ^ 0x01010101;
    UNROLL
    for (int i = 0; i < SUMS; i++)
        sum[i] = x + i;
    for (int64_t n = 0; n < steps; n++) {
        UNROLL
        for (int i = 0; i < SUMS; i++)
            sum[i] = dot(sum[i], x, y);
    }
    vint all = sum[0];
    UNROLL
    for (int i = 1; i < SUMS; i++)
        all ^= sum[i];
    *sink = all[0];
    return steps * SUMS * LANES * WORD * 2;
}
