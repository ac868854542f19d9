/* SPDX-License-Identifier: Apache-2.0 */
/* Lane-wise maximum that propagates NaN from either operand, as the reference does. */
#ifndef EW_BACKEND_CPU_KERNEL_POOL_LARGER_H
#define EW_BACKEND_CPU_KERNEL_POOL_LARGER_H

#include "backend/cpu/kernel/common/vec.h"

/* One comparison more than vmax, which drops a NaN in b. */
#if defined(EW_ISA_IS_avx512)
INLINE vec larger(vec a, vec b)
{
    const __mmask16 number = _mm512_cmp_ps_mask((__m512)b, (__m512)b, _CMP_ORD_Q);
    return (vec)_mm512_mask_max_ps((__m512)b, number, (__m512)b, (__m512)a);
}
#elif defined(EW_ISA_IS_avx2)
INLINE vec larger(vec a, vec b)
{
    const __m256 nan = _mm256_cmp_ps((__m256)b, (__m256)b, _CMP_UNORD_Q);
    return (vec)_mm256_or_ps((__m256)vmax(a, b), nan); /* all bits set is a NaN */
}
#else
INLINE vec larger(vec a, vec b)
{
    return pick((a < b) | ~(b <= b), b, a);
}
#endif

#endif
