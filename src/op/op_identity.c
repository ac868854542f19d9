/* SPDX-License-Identifier: Apache-2.0 */
/* Identity: a copy. */
#include <string.h>

#include "op/pointwise.h"

static ew_err forward(const struct ew_call *c)
{
    if (c->out[0]->data != c->in[0]->data && ew_tensor_count(c->in[0]) > 0)
        memcpy(c->out[0]->data, c->in[0]->data, ew_tensor_bytes(c->in[0]));
    return EW_OK;
}

static double df(double x, double y, const void *attr)
{
    return 1;
}

EW_UNARY_BACKWARD(df)

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    (void)c;
    (void)out; /* computes nothing */
}

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"2x3x5"}}, .n_in = 1, .out_shape = "2x3x5"},
    {.name = "bool", .in = {{"3", EW_BOOL}}, .n_in = 1, .out_shape = "3"},
};

const struct ew_op ew_op_identity = {
    .name = "identity",
    .help = "x",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE | EW_OP_VIEW | EW_OP_NO_CDL,
    .min_in = 1,
    .max_in = 1,
    .cost = cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Identity"},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
