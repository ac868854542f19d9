/* SPDX-License-Identifier: Apache-2.0 */
/* Min: the smallest of any number of inputs, with broadcasting. */
#include "op/pointwise.h"

static double f(double a, double b)
{
    return a < b || isnan(a) ? a : b;
}

static int64_t fi(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static uint64_t fu(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static ew_err forward(const struct ew_call *c)
{
    static const struct ew_binary fn = {f, fi, fu};
    return ew_variadic_forward(c, &fn, 1);
}

const struct ew_op ew_op_min = {
    .name = "min",
    .help = "smallest of the inputs, broadcasting",
    EW_EXTREME_OP("Min"),
    .forward = forward,
};
