/* SPDX-License-Identifier: Apache-2.0 */
/* Squeeze: removes axes of size 1. */
#include "graph/onnx.h"
#include "op/axis.h"
#include "op/move.h"
#include "op/types.h"

extern const struct ew_op ew_op_squeeze;

/* Mask of the removed axes. */
static ew_err find_gone(const struct ew_call *c, unsigned *out)
{
    const struct ew_shape *in = &c->in[0]->shape;
    const struct ew_tensor *list = ew_call_in(c, 1);
    struct ew_ints axes = {0};
    *out = 0;
    if (list)
        EW_TRY(ew_axes_read(list, in->rank, 0, &axes));
    for (int i = 0; i < axes.n; i++) {
        EW_CHECK(in->dim[axes.v[i]] == 1, EW_ERR_SHAPE, "axis %lld has %lld elements, not 1",
                 (long long)axes.v[i], (long long)in->dim[axes.v[i]]);
        *out |= 1u << axes.v[i];
    }
    for (int i = 0; !list && i < in->rank; i++)
        *out |= in->dim[i] == 1 ? 1u << i : 0;
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_shape *in = &c->in[0]->shape;
    struct ew_shape *out = &c->out[0]->shape;
    unsigned gone;
    EW_TRY(find_gone(c, &gone));
    out->rank = 0;
    for (int i = 0; i < in->rank; i++)
        if (!(gone >> i & 1))
            out->dim[out->rank++] = in->dim[i];
    return EW_OK;
}

/* The list is permuted, and the remaining axes keep their new order. */
static ew_err permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    const struct ew_node *n = &g->nodes[node];
    struct ew_tensor *slots[3];
    struct ew_call c;
    unsigned gone;
    /* without a list the removed axes depend on sizes, which may change */
    EW_CHECK(n->n_in > 1 && n->in[1] >= 0, EW_ERR_UNSUPPORTED, "%s: has no axes", n->name);
    ew_graph_call(g, n, slots, &c);
    EW_TRY(find_gone(&c, &gone));
    const int rank = c.in[0]->shape.rank;
    EW_TRY(ew_axes_input_permute(g, node, 1, -1, perm));
    int to = 0;
    for (int i = 0; i < rank; i++) {
        if (gone >> perm[i] & 1)
            continue;
        int before = 0; /* remaining axes before this one */
        for (int k = 0; k < perm[i]; k++)
            before += !(gone >> k & 1);
        out_perm[to++] = before;
    }
    return EW_OK;
}

/* Before opset 13 the axes are an attribute. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    int in[2] = {n->in[0], -1};
    EW_TRY(ew_onnx_input_or_attr(g, n, 1, "axes", &in[1]));
    const struct ew_onnx_node own = ew_onnx_with_inputs(n, in, in[1] < 0 ? 1 : 2);
    return ew_onnx_import_default(g, &ew_op_squeeze, &own, "", out);
}

static const struct ew_op_case cases[] = {
    {.name = "axes",
     .in = {{"2x1x3x1"}, {"2", EW_S64, EW_FILL_VALUES, .values = "-1,1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x3"},
    {.name = "pooled",
     .in = {{"2x5x1x1"}, {"2", EW_S64, EW_FILL_VALUES, .values = "2,3", .constant = true}},
     .n_in = 2,
     .out_shape = "2x5"},
    {.name = "one of two",
     .in = {{"2x1x3x1"}, {"1", EW_S64, EW_FILL_VALUES, .values = "1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x3x1"},
    {.name = "all", .in = {{"1x3x1"}}, .n_in = 1, .out_shape = "3"},
    {.name = "to a scalar", .in = {{"1x1", EW_S8}}, .n_in = 1, .out_shape = ""},
};

const struct ew_op ew_op_squeeze = {
    .name = "squeeze",
    .help = "without axes that have one element",
    .flags = EW_OP_VIEW,
    .min_in = 1,
    .max_in = 2,
    .known_in = 1 << 1,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = ew_view_forward,
    .backward = ew_view_backward,
    .permute = permute,
    .onnx = {.type = "Squeeze", .import = import},
    EW_OP_CASES(cases),
};
