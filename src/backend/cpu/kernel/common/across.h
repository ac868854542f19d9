/* SPDX-License-Identifier: Apache-2.0 */
/* Horizontal reductions of a vector, and partial vectors. */
#ifndef EW_BACKEND_CPU_KERNEL_COMMON_ACROSS_H
#define EW_BACKEND_CPU_KERNEL_COMMON_ACROSS_H

#include "backend/cpu/kernel/common/vec.h"

INLINE float across_max(vec v)
{
    float m = v[0];
    for (int i = 1; i < LANES; i++)
        m = m < v[i] ? v[i] : m;
    return m;
}

/* Pairwise: halves are added until one lane is left. */
INLINE float across_sum(vec v)
{
    float s[LANES];
    memcpy(s, &v, sizeof(s));
    UNROLL
    for (int step = LANES / 2; step > 0; step /= 2)
        for (int i = 0; i < step; i++)
            s[i] += s[i + step];
    return s[0];
}

/* Sets the lanes from n on to `fill`. */
INLINE vec fill_part(vec v, int64_t n, float fill)
{
    vint lane;
    UNROLL
    for (int i = 0; i < LANES; i++)
        lane[i] = i;
    return n < LANES ? pick(lane < (int32_t)n, v, splat(fill)) : v;
}

#endif
