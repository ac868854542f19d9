/* SPDX-License-Identifier: Apache-2.0 */
/* Keys' cubic convolution kernel (1981) with its free parameter a, at distance x >= 0. */
#ifndef EW_OP_CUBIC_H
#define EW_OP_CUBIC_H

static inline double ew_cubic(double a, double x)
{
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

#endif
