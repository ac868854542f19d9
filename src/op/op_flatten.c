/* SPDX-License-Identifier: Apache-2.0 */
/* Flatten: a matrix of the axes before and from `axis`. */
#include "op/axis.h"
#include "op/move.h"
#include "op/shape_attr.h"
#include "op/types.h"

static const struct ew_field attrs[] = {
    {.name = "axis",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct ew_flatten_attr, axis),
     .def = "1",
     .help = "the axes before it become the first dimension"},
    {.name = "unit",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct ew_flatten_attr, unit),
     .help = "axes that must have one element for the layout to fit, bit by bit"},
    EW_FIELD_END};

static ew_err infer(const struct ew_call *c)
{
    const struct ew_flatten_attr *a = c->attr;
    const struct ew_shape *in = &c->in[0]->shape;
    EW_TRY(ew_axis_check_unit(in, a->unit));
    EW_CHECK(a->axis >= -in->rank && a->axis <= in->rank, EW_ERR_SHAPE,
             "axis %lld is outside a rank of %d", (long long)a->axis, in->rank);
    const int axis = ew_axis_of(a->axis, in->rank);
    c->out[0]->shape =
        (struct ew_shape){2, {ew_shape_span(in, 0, axis), ew_shape_span(in, axis, in->rank)}};
    return EW_OK;
}

/* Besides the order of bytes, the set of axes before `axis` must be preserved. */
static ew_err permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    const struct ew_node *n = &g->nodes[node];
    struct ew_flatten_attr *a = n->attr;
    const struct ew_shape *s = &g->values[n->in[0]].t.shape;
    const int axis = ew_axis_of(a->axis, s->rank);
    for (int i = 0; i < axis; i++)
        EW_CHECK(perm[i] < axis, EW_ERR_UNSUPPORTED, "%s: axes cross the cut", n->name);
    EW_TRY(ew_view_permute(g, node, perm, out_perm));
    a->axis = axis;
    return EW_OK;
}

static const char *const rename[] = {"unit", NULL, NULL};

static const struct ew_op_case cases[] = {
    {.name = "classifier", .in = {{"2x3x4x5"}}, .n_in = 1, .out_shape = "2x60"},
    {.name = "pooled", .in = {{"2x5x1x1"}}, .n_in = 1, .out_shape = "2x5"},
    {.name = "all", .attrs = "axis=0", .in = {{"2x3"}}, .n_in = 1, .out_shape = "1x6"},
    {.name = "end", .attrs = "axis=2", .in = {{"2x3"}}, .n_in = 1, .out_shape = "6x1"},
    {.name = "negative", .attrs = "axis=-1", .in = {{"2x3x4"}}, .n_in = 1, .out_shape = "6x4"},
};

const struct ew_op ew_op_flatten = {
    .name = "flatten",
    .help = "a matrix from the axes before and after one",
    .flags = EW_OP_VIEW,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_flatten_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = ew_view_forward,
    .backward = ew_view_backward,
    .permute = permute,
    .onnx = {.type = "Flatten", .rename = rename},
    EW_OP_CASES(cases),
};
