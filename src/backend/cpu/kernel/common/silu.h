/* SPDX-License-Identifier: Apache-2.0 */
/* x sigmoid(x) where it ends a sum: as act.h's, in two thirds of the operations, for exp(-x) need
 * be right only beside 1, and neither denormal nor infinite.  Error: 4e-7 of the larger of 1 and
 * the result. */
#ifndef EW_BACKEND_CPU_KERNEL_COMMON_SILU_H
#define EW_BACKEND_CPU_KERNEL_COMMON_SILU_H

#include "backend/cpu/kernel/common/vec.h"

/* exp(-x) = 2^n 2^f, n whole, |f| <= 1/2; the polynomial interpolates 2^f at six Chebyshev nodes,
 * relative error 2.4e-7.  Adding 1.5 * 2^23 leaves n in the low bits, where a shift makes it an
 * exponent.  A nan in x is one in the quotient. */
INLINE vec vsilu_end(vec x)
{
    const vec magic = splat(12582912.0f);
    const vec t = vmin(vmax(x * -1.44269504f, splat(-126.0f)), splat(126.0f));
    const vec whole = t + magic, f = t - (whole - magic);
    vec p = splat(0.00133908633f);
    p = p * f + 0.00967603177f;
    p = p * f + 0.0555035695f;
    p = p * f + 0.240221068f;
    p = p * f + 0.693147182f;
    p = p * f + 1.0f;
    const vec e = (vec)((vint)p + ((vint)whole << 23));
    return x / (1.0f + e);
}

#endif
