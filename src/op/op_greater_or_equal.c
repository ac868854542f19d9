/* SPDX-License-Identifier: Apache-2.0 */
/* GreaterOrEqual: a >= b with broadcasting, as bool. */
#include "op/pointwise.h"

EW_ORDER_FORWARD(>=)

const struct ew_op ew_op_greater_or_equal = {
    .name = "greater_or_equal",
    .help = "a >= b, as bool, broadcasting",
    EW_ORDER_OP(.type = "GreaterOrEqual", .since = 12),
};
