/* SPDX-License-Identifier: Apache-2.0 */
/* Bit masks of non-zero floats. */
#ifndef EW_BACKEND_CPU_KERNEL_SPARSE_NONZERO_BITS_H
#define EW_BACKEND_CPU_KERNEL_SPARSE_NONZERO_BITS_H

#include "backend/cpu/kernel/common/vec.h"

#define SPAN 64 /* floats of a mask */

/* Bit i: p[i] is not zero, i < n <= SPAN. */
#if defined(EW_ISA_IS_avx512)
INLINE uint64_t lane_marks(vec v)
{
    return _mm512_cmp_ps_mask((__m512)v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
}
#elif defined(EW_ISA_IS_avx2)
INLINE uint64_t lane_marks(vec v)
{
    const __m256 zero = _mm256_setzero_ps();
    return (uint64_t)_mm256_movemask_ps(_mm256_cmp_ps((__m256)v, zero, _CMP_NEQ_UQ));
}
#else
INLINE uint64_t lane_marks(vec v)
{
    const vint bits = ~((v >= 0) & (v <= 0)) & (vint){1, 2, 4, 8}; /* NaN counts as non-zero */
    return (uint64_t)(bits[0] + bits[1] + bits[2] + bits[3]);
}
#endif

INLINE uint64_t nonzero_mask(const float *p, int64_t n)
{
    uint64_t m = 0;
    if (n == SPAN) {
        UNROLL
        for (int i = 0; i < SPAN; i += LANES)
            m |= lane_marks(load(p + i)) << i;
        return m;
    }
    for (int64_t i = 0; i < n; i += LANES)
        m |= lane_marks(load_n(p + i, n - i)) << i;
    return m;
}

#endif
