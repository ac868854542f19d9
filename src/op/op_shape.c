/* SPDX-License-Identifier: Apache-2.0 */
/* Shape: the dimensions of a tensor as int64. */
#include "graph/onnx.h"
#include "graph/ops.h"
#include "op/axis.h"
#include "op/move.h"

struct attr {
    int64_t start, end;  /* axes [start, end); negative counts from the end */
    struct ew_ints axes; /* if not empty, these axes instead: set when the input is permuted */
};

static const struct ew_field attrs[] = {
    {.name = "start",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct attr, start),
     .help = "first axis; negative counts from the back"},
    {.name = "end",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct attr, end),
     .def = "9223372036854775807",
     .help = "the axis after the last; negative counts from the back"},
    {.name = "axes",
     .type = EW_FIELD_INTS,
     .offset = offsetof(struct attr, axes),
     .help = "the axes themselves, instead of start and end"},
    EW_FIELD_END};

static int64_t clamp_axis(int64_t v, int rank)
{
    const int64_t at = v < 0 ? v + rank : v;
    return ew_max_i64(0, ew_min_i64(at, rank));
}

/* Resolves the axes. */
static ew_err list_axes(const struct attr *a, int rank, struct ew_ints *out)
{
    if (a->axes.n) {
        *out = a->axes;
        for (int i = 0; i < out->n; i++)
            EW_CHECK(out->v[i] >= 0 && out->v[i] < rank, EW_ERR_SHAPE,
                     "axis %lld is outside a rank of %d", (long long)out->v[i], rank);
        return EW_OK;
    }
    *out = (struct ew_ints){0};
    for (int64_t i = clamp_axis(a->start, rank); i < clamp_axis(a->end, rank); i++)
        out->v[out->n++] = i;
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    struct ew_ints axes;
    EW_TRY(list_axes(c->attr, c->in[0]->shape.rank, &axes));
    c->out[0]->dtype = EW_S64;
    c->out[0]->shape = (struct ew_shape){1, {axes.n}};
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_ints axes;
    int64_t *out = c->out[0]->data;
    EW_TRY(list_axes(c->attr, c->in[0]->shape.rank, &axes));
    for (int i = 0; i < axes.n; i++)
        out[i] = c->in[0]->shape.dim[axes.v[i]];
    return EW_OK;
}

static bool is_all(const struct ew_ints *axes, int rank)
{
    for (int i = 0; i < axes->n; i++)
        if (axes->v[i] != i)
            return false;
    return axes->n == rank;
}

static ew_err permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    struct attr *a = g->nodes[node].attr;
    const int rank = g->values[g->nodes[node].in[0]].t.shape.rank;
    struct ew_ints axes;
    EW_TRY(list_axes(a, rank, &axes));
    out_perm[0] = 0;
    if (axes.n == 0)
        return EW_OK; /* an empty list stays empty */
    for (int i = 0; i < axes.n; i++)
        axes.v[i] = ew_axis_moved((int)axes.v[i], perm, rank);
    *a = is_all(&axes, rank) ? (struct attr){.end = INT64_MAX} : (struct attr){.axes = axes};
    return EW_OK;
}

/* Opset 13 has the whole shape only: gathers the axes from it. */
static ew_err expand(struct ew_graph *g, int node, int *out)
{
    const struct ew_node n = g->nodes[node];
    struct ew_ints axes;
    EW_TRY(list_axes(n.attr, g->values[n.in[0]].t.shape.rank, &axes));
    if (is_all(&axes, g->values[n.in[0]].t.shape.rank))
        return EW_OK;
    int in[2];
    EW_TRY(ew_graph_const_ints(g, NULL, axes.v, axes.n, &in[1]));
    EW_TRY(ew_graph_add(g, n.op, NULL, NULL, ew_inputs(n.in, 1), &in[0]));
    return ew_graph_add(g, &ew_op_gather, n.name, NULL, ew_inputs(in, 2), out);
}

static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    ew_onnx_drop(n, "start");
    ew_onnx_drop(n, "end");
    return EW_OK;
}

static const char *const rename[] = {"axes", NULL, NULL};

static const struct ew_op_case cases[] = {
    {.name = "all", .in = {{"2x3x4"}}, .n_in = 1, .out_shape = "3"},
    {.name = "some", .attrs = "start=1 end=-1", .in = {{"2x3x4x5"}}, .n_in = 1, .out_shape = "2"},
    {.name = "beyond",
     .attrs = "start=-9 end=9",
     .in = {{"2x3", EW_U8}},
     .n_in = 1,
     .out_shape = "2"},
    {.name = "none", .attrs = "start=2 end=1", .in = {{"2x3x4"}}, .n_in = 1, .out_shape = "0"},
    {.name = "listed", .attrs = "axes=0,2,1", .in = {{"2x3x4"}}, .n_in = 1, .out_shape = "3"},
    {.name = "scalar", .in = {{""}}, .n_in = 1, .out_shape = "0"},
};

const struct ew_op ew_op_shape = {
    .name = "shape",
    .help = "the dimensions of a tensor",
    .flags = EW_OP_SHAPE_ONLY | EW_OP_NO_CDL,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .permute = permute,
    .onnx = {.type = "Shape", .rename = rename, .export = export_node, .expand = expand},
    EW_OP_CASES(cases),
};
