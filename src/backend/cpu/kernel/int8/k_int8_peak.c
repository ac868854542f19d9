/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit MACs on registers only: the peak that integer kernels are compared with. */
#include "backend/cpu/kernel/int8/int8_vec.h"

#define SUMS 10 /* at least latency x throughput of known cores, and fewer than their registers */

int64_t EW_K(int8_peak)(int64_t steps, int32_t *sink)
{
    vint sum[SUMS], y[SUMS], x = splat_word(sink);
    UNROLL
    for (int i = 0; i < SUMS; i++) {
        sum[i] = x + i;
        y[i] = x ^ (i + 1); /* different operands, or one product would serve all sums */
    }
    for (int64_t n = 0; n < steps; n++) {
        UNROLL
        for (int i = 0; i < SUMS; i++)
            sum[i] = dot(sum[i], x, y[i]);
        x += 1; /* or for all steps */
    }
    vint all = sum[0];
    UNROLL
    for (int i = 1; i < SUMS; i++)
        all ^= sum[i];
    *sink = all[0];
    return steps * SUMS * LANES * WORD * 2;
}
