/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup: each byte is replaced by its entry of a table; any function of a quantised tensor. */
#include "graph/graph.h"
#include "graph/onnx.h"
#include "op/qlinear.h"
#include "op/shape_attr.h"

static ew_err infer(const struct ew_call *c)
{
    EW_TRY(ew_types_check(c, EW_LOOKUP_X, EW_TYPES_QUANT8));
    EW_TRY(ew_types_check(c, EW_LOOKUP_TABLE, EW_TYPES_QUANT8));
    EW_CHECK(ew_tensor_count(c->in[EW_LOOKUP_TABLE]) == 256, EW_ERR_SHAPE,
             "the table has %lld entries, not 256",
             (long long)ew_tensor_count(c->in[EW_LOOKUP_TABLE]));
    c->out[0]->dtype = c->in[EW_LOOKUP_TABLE]->dtype;
    c->out[0]->shape = c->in[EW_LOOKUP_X]->shape;
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    const uint8_t *x = c->in[EW_LOOKUP_X]->data, *table = c->in[EW_LOOKUP_TABLE]->data;
    uint8_t *y = c->out[0]->data;
    for (int64_t i = 0; i < ew_tensor_count(c->out[0]); i++)
        y[i] = table[x[i]];
    return EW_OK;
}

static ew_err permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    return EW_OK; /* it knows no axis */
}

/* Gather counts negative indices from the end, as bytes do. */
static ew_err expand(struct ew_graph *g, int node, int *out)
{
    const struct ew_node n = g->nodes[node];
    const struct ew_cast_attr to = {.to = EW_S32};
    int in[2] = {n.in[EW_LOOKUP_TABLE], n.in[EW_LOOKUP_X]};
    EW_TRY(ew_graph_add(g, ew_op_find("cast"), NULL, &to, &in[1], 1, &in[1], 1));
    return ew_graph_add(g, ew_op_find("gather"), n.name, NULL, in, 2, out, 1);
}

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "uint8", .in = {{"2x5x7x11", EW_U8, EW_FILL_BYTES}, {"256", EW_U8, EW_FILL_BYTES, .constant = true}},
     .n_in = 2, .out_shape = "2x5x7x11"},
    {.name = "int8 to uint8", .in = {{"300", EW_S8, EW_FILL_BYTES}, {"256", EW_U8, EW_FILL_BYTES, .constant = true}},
     .n_in = 2, .out_shape = "300"},
};
/* clang-format on */

const struct ew_op ew_op_lookup = {
    .name = "lookup",
    .help = "each byte replaced by its entry of a table of 256",
    .flags = EW_OP_INPLACE,
    .min_in = EW_LOOKUP_INPUTS,
    .max_in = EW_LOOKUP_INPUTS,
    .infer = infer,
    .forward = forward,
    .permute = permute,
    .onnx = {.expand = expand},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
