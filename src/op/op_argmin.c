/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMin: index of the smallest element along an axis. */
#include "op/arg.h"

static ew_err forward(const struct ew_call *c)
{
    return ew_arg_forward(c, false);
}

const struct ew_op ew_op_argmin = {
    .name = "argmin",
    .help = "index of the smallest element along an axis",
    EW_ARG_OP("ArgMin"),
    .forward = forward,
};
