/* SPDX-License-Identifier: Apache-2.0 */
/* LessOrEqual: a <= b with broadcasting, as bool. */
#include "op/pointwise.h"

EW_ORDER_FORWARD(<=)

const struct ew_op ew_op_less_or_equal = {
    .name = "less_or_equal",
    .help = "a <= b, as bool, broadcasting",
    EW_ORDER_OP(.type = "LessOrEqual", .since = 12),
};
