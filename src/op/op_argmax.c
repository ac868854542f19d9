/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax: index of the largest element along an axis. */
#include "op/arg.h"

static ew_err forward(const struct ew_call *c)
{
    return ew_arg_forward(c, true);
}

const struct ew_op ew_op_argmax = {
    .name = "argmax",
    .help = "index of the largest element along an axis",
    EW_ARG_OP("ArgMax"),
    .forward = forward,
};
