/* SPDX-License-Identifier: Apache-2.0 */
/* Reshape: the same elements under another shape. */
#include "graph/onnx.h"
#include "op/axis.h"
#include "op/move.h"
#include "op/shape_attr.h"

static const struct ew_field attrs[] = {
    {.name = "allowzero",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct ew_reshape_attr, allowzero),
     .help = "0 in the shape means 0, not 'as in the input'"},
    {.name = "unit",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct ew_reshape_attr, unit),
     .help = "axes that must have one element for the layout to fit, bit by bit"},
    EW_FIELD_END};

/* Dimension i of the new shape; -1: to be inferred. */
static ew_err wanted_dim(const struct ew_call *c, const struct ew_ints *shape, int i, int64_t *out)
{
    const struct ew_reshape_attr *a = c->attr;
    *out = shape->v[i];
    EW_CHECK(*out >= -1, EW_ERR_SHAPE, "dimension %d of the shape is %lld", i, (long long)*out);
    if (*out == 0 && !a->allowzero) {
        EW_CHECK(i < c->in[0]->shape.rank, EW_ERR_SHAPE,
                 "dimension %d of the shape is 0, the input has only %d", i, c->in[0]->shape.rank);
        *out = c->in[0]->shape.dim[i];
    }
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_reshape_attr *a = c->attr;
    const int64_t count = ew_tensor_count(c->in[0]);
    struct ew_shape *out = &c->out[0]->shape;
    struct ew_ints shape;
    int64_t known = 1;
    int free_dim = -1;
    EW_TRY(ew_axis_check_unit(&c->in[0]->shape, a->unit));
    EW_TRY(ew_tensor_ints(c->in[1], "shape", &shape));
    EW_CHECK(shape.n <= EW_MAX_RANK, EW_ERR_LIMIT, "shape has %d dimensions, at most %d fit",
             shape.n, EW_MAX_RANK);
    out->rank = shape.n;
    for (int i = 0; i < shape.n; i++) {
        EW_TRY(wanted_dim(c, &shape, i, &out->dim[i]));
        EW_CHECK(out->dim[i] >= 0 || free_dim < 0, EW_ERR_SHAPE, "shape has -1 twice");
        if (out->dim[i] < 0)
            free_dim = i;
        else
            EW_CHECK(!__builtin_mul_overflow(known, out->dim[i], &known), EW_ERR_LIMIT,
                     "shape has too many elements");
    }
    if (free_dim >= 0) {
        EW_CHECK(known > 0 && count % known == 0, EW_ERR_SHAPE,
                 "%lld elements do not divide into %lld", (long long)count, (long long)known);
        out->dim[free_dim] = count / known;
        known = count;
    }
    EW_CHECK(known == count, EW_ERR_SHAPE, "the input has %lld elements, the shape %lld",
             (long long)count, (long long)known);
    return EW_OK;
}

/* A 0 copies the input's dimension at that position, which must be the same in both orders;
 * otherwise the transpose stays. */
static ew_err permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    const struct ew_node *n = &g->nodes[node];
    const struct ew_reshape_attr *a = n->attr;
    const struct ew_value *v = &g->values[n->in[1]];
    struct ew_ints shape = {0};
    EW_CHECK(v->t.data, EW_ERR_UNSUPPORTED, "%s: shape %s is not known", n->name, v->name);
    EW_TRY(ew_tensor_ints(&v->t, v->name, &shape));
    for (int i = 0; i < shape.n && !a->allowzero; i++)
        EW_CHECK(shape.v[i] != 0 || perm[i] == i, EW_ERR_UNSUPPORTED,
                 "%s: dimension %d of the shape is another one of the input", n->name, i);
    return ew_view_permute(g, node, perm, out_perm);
}

/* Opset 13 lacks allowzero. */
static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_reshape_attr *a = g->nodes[node].attr;
    if (!a->allowzero)
        ew_onnx_drop(n, "allowzero");
    else
        n->opset = n->opset < 14 ? 14 : n->opset;
    return EW_OK;
}

static const char *const rename[] = {"unit", NULL, NULL};

static const struct ew_op_case cases[] = {
    {.name = "zero and rest",
     .in = {{"2x3x4"}, {"2", EW_S64, EW_FILL_VALUES, .values = "0,-1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x12"},
    {.name = "pooled",
     .in = {{"2x5x1x1"}, {"2", EW_S64, EW_FILL_VALUES, .values = "0,-1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x5"},
    {.name = "more",
     .in = {{"6x4"}, {"4", EW_S64, EW_FILL_VALUES, .values = "1,2,3,4", .constant = true}},
     .n_in = 2,
     .out_shape = "1x2x3x4"},
    {.name = "scalar",
     .in = {{"1x1"}, {"0", EW_S64, EW_FILL_VALUES, .values = "", .constant = true}},
     .n_in = 2,
     .out_shape = ""},
    {.name = "empty",
     .attrs = "allowzero=true",
     .in = {{"0x3x4"}, {"3", EW_S64, EW_FILL_VALUES, .values = "3,4,0", .constant = true}},
     .n_in = 2,
     .out_shape = "3x4x0"},
    {.name = "bytes",
     .in = {{"3x5", EW_U8}, {"1", EW_S64, EW_FILL_VALUES, .values = "15", .constant = true}},
     .n_in = 2,
     .out_shape = "15"},
};

const struct ew_op ew_op_reshape = {
    .name = "reshape",
    .help = "the same elements under another shape",
    .flags = EW_OP_VIEW,
    .min_in = 2,
    .max_in = 2,
    .known_in = 1 << 1,
    .attr_size = sizeof(struct ew_reshape_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = ew_view_forward,
    .backward = ew_view_backward,
    .permute = permute,
    .onnx = {.type = "Reshape", .since = 5, .rename = rename, .export = export_node},
    EW_OP_CASES(cases),
};
