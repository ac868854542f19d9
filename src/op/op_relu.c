/* SPDX-License-Identifier: Apache-2.0 */
/* Relu: max(x, 0). */
#include "graph/graph.h"
#include "graph/onnx.h"
#include "op/pointwise.h"

/* NaN stays NaN, as in every kernel. */
static double f(double x, const void *attr)
{
    return x < 0 ? 0 : x;
}

static int64_t fi(int64_t x, const void *attr)
{
    return x > 0 ? x : 0;
}

static double df(double x, double y, const void *attr)
{
    return y > 0 ? 1 : 0;
}

static ew_err forward(const struct ew_call *c)
{
    return ew_dtype_is_float(c->in[0]->dtype) ? ew_unary_forward(c, f)
                                              : ew_unary_forward_int(c, fi);
}

EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"2x3x5", .fill = EW_FILL_AWAY}}, .n_in = 1, .out_shape = "2x3x5"},
    {.name = "scalar", .in = {{"", .fill = EW_FILL_AWAY}}, .n_in = 1, .out_shape = ""},
    {.name = "int", .in = {{"5", EW_S8}}, .n_in = 1, .out_shape = "5"},
    {.name = "half", .in = {{"5", EW_F16}}, .n_in = 1, .out_shape = "5"},
};

/* Integers need opset 14. */
static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    if (!ew_dtype_is_float(g->values[n->in[0]].t.dtype) && n->opset < 14)
        n->opset = 14;
    return EW_OK;
}

static bool makes_relu(const void *attr)
{
    return true;
}

const struct ew_op ew_op_relu = {
    .name = "relu",
    .help = "max(x, 0)",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .makes_relu = makes_relu,
    .saves = EW_SAVE_OUT,
    .min_in = 1,
    .max_in = 1,
    .infer = ew_unary_infer_signed,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Relu", .export = export_node},
    EW_OP_CASES(cases),
};
