/* SPDX-License-Identifier: Apache-2.0 */
/* Less: a < b with broadcasting, as bool. */
#include "op/pointwise.h"

EW_ORDER_FORWARD(<)

const struct ew_op ew_op_less = {
    .name = "less",
    .help = "a < b, as bool, broadcasting",
    EW_ORDER_OP(.type = "Less", .since = 7),
};
