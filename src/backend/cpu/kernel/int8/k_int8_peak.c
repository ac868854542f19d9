/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit multiply-adds on registers alone: the peak that integer kernels are measured against. */
#include "backend/cpu/kernel/int8/int8_vec.h"

#define SUMS 10 /* more than latency x units of any core that we know, less than its registers */

int64_t EW_K(int8_peak)(int64_t steps, int32_t *sink)
{
    vint sum[SUMS], y[SUMS], x = splat_word(sink);
    UNROLL
    for (int i = 0; i < SUMS; i++) {
        sum[i] = x + i;
        y[i] = x ^ (i + 1); /* all different, or one product would do for all sums */
    }
    for (int64_t n = 0; n < steps; n++) {
        UNROLL
        for (int i = 0; i < SUMS; i++)
            sum[i] = dot(sum[i], x, y[i]);
        x += 1; /* and for all steps */
    }
    vint all = sum[0];
    UNROLL
    for (int i = 1; i < SUMS; i++)
        all ^= sum[i];
    *sink = all[0];
    return steps * SUMS * LANES * WORD * 2;
}
