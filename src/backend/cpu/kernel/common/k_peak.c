/* SPDX-License-Identifier: Apache-2.0 */
/* FMAs on registers only: the peak that other kernels are compared with. */
#include "backend/cpu/kernel/common/vec.h"

#define SUMS 12 /* at least latency x throughput of known cores, and fewer than their registers */

int64_t EW_K(peak)(int64_t steps, float *sink)
{
    vec sum[SUMS];
    const vec x = splat(*sink), y = splat(*sink + 0.5f);
    UNROLL
    for (int i = 0; i < SUMS; i++)
        sum[i] = x * (float)i;
    for (int64_t n = 0; n < steps; n++) {
        UNROLL
        for (int i = 0; i < SUMS; i++)
            sum[i] = sum[i] * y + x;
    }
    vec all = sum[0];
    UNROLL
    for (int i = 1; i < SUMS; i++)
        all += sum[i];
    *sink = all[0];
    return steps * SUMS * LANES * 2;
}
