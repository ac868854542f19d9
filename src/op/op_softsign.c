/* SPDX-License-Identifier: Apache-2.0 */
/* Softsign: x / (1 + |x|). */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return x / (1 + fabs(x));
}

static double df(double x, double y, const void *attr)
{
    return (1 - fabs(y)) * (1 - fabs(y));
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 3 * ew_tensor_count(c->out[0]);
}

static const struct ew_op_case cases[] = {EW_UNARY_CASES(EW_FILL_NORMAL)};

const struct ew_op ew_op_softsign = {
    .name = "softsign",
    .help = "x / (1 + |x|)",
    EW_UNARY_OP(.type = "Softsign"),
    .saves = EW_SAVE_OUT,
    .cost = cost,
    EW_OP_CASES(cases),
};
