/* SPDX-License-Identifier: Apache-2.0 */
/* Unsqueeze: inserts axes of size 1. */
#include "graph/onnx.h"
#include "op/axis.h"
#include "op/move.h"

extern const struct ew_op ew_op_unsqueeze;

/* Mask of the inserted axes. */
static ew_err find_new(const struct ew_call *c, int *rank, unsigned *out)
{
    const int64_t n = ew_tensor_count(c->in[1]);
    EW_CHECK(n + c->in[0]->shape.rank <= EW_MAX_RANK, EW_ERR_LIMIT,
             "the output would have %lld dimensions", (long long)(n + c->in[0]->shape.rank));
    *rank = (int)n + c->in[0]->shape.rank;
    struct ew_ints axes;
    EW_TRY(ew_axes_read(c->in[1], *rank, 0, &axes));
    *out = 0;
    for (int i = 0; i < axes.n; i++)
        *out |= 1u << axes.v[i];
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    struct ew_shape *out = &c->out[0]->shape;
    unsigned fresh;
    int from = 0;
    EW_TRY(find_new(c, &out->rank, &fresh));
    for (int i = 0; i < out->rank; i++)
        out->dim[i] = fresh >> i & 1 ? 1 : c->in[0]->shape.dim[from++];
    return EW_OK;
}

/* The inserted axes stay in place, the others are permuted around them. */
static ew_err permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    const struct ew_node *n = &g->nodes[node];
    struct ew_tensor *slots[3];
    struct ew_call c;
    int rank, at[EW_MAX_RANK], count = 0;
    unsigned fresh;
    EW_CHECK(g->values[n->in[1]].kind == EW_VALUE_CONST, EW_ERR_UNSUPPORTED,
             "%s: its axes are not constant", n->name);
    ew_graph_call(g, n, slots, &c);
    EW_TRY(find_new(&c, &rank, &fresh));
    for (int i = 0; i < rank; i++)
        if (!(fresh >> i & 1))
            at[count++] = i;
    for (int i = 0; i < rank; i++)
        out_perm[i] = i;
    for (int i = 0; i < count; i++)
        out_perm[at[i]] = at[perm[i]];
    return EW_OK;
}

/* Before opset 13 the axes are an attribute. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    int in[2] = {n->in[0], -1};
    EW_TRY(ew_onnx_input_or_attr(g, n, 1, "axes", &in[1]));
    const struct ew_onnx_node own = ew_onnx_with_inputs(n, in, 2);
    return ew_onnx_import_default(g, &ew_op_unsqueeze, &own, "", out);
}

static const struct ew_op_case cases[] = {
    {.name = "ends",
     .in = {{"2x3"}, {"2", EW_S64, EW_FILL_VALUES, .values = "0,-1", .constant = true}},
     .n_in = 2,
     .out_shape = "1x2x3x1"},
    {.name = "inside",
     .in = {{"2x3x4"}, {"1", EW_S64, EW_FILL_VALUES, .values = "1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x1x3x4"},
    {.name = "scalar",
     .in = {{"", EW_S64}, {"1", EW_S64, EW_FILL_VALUES, .values = "0", .constant = true}},
     .n_in = 2,
     .out_shape = "1"},
};

const struct ew_op ew_op_unsqueeze = {
    .name = "unsqueeze",
    .help = "with new axes of one element",
    .flags = EW_OP_VIEW,
    .min_in = 2,
    .max_in = 2,
    .known_in = 1 << 1,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = ew_view_forward,
    .backward = ew_view_backward,
    .permute = permute,
    .onnx = {.type = "Unsqueeze", .import = import},
    EW_OP_CASES(cases),
};
