/* SPDX-License-Identifier: Apache-2.0 */
/* Floor: the largest whole number that is not above x. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return floor(x);
}

EW_UNARY_FORWARD(f)

const struct ew_op ew_op_floor = {
    .name = "floor",
    .help = "x rounded down",
    EW_ROUNDING_OP(.type = "Floor"),
    .forward = forward,
};
