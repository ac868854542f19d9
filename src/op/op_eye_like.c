/* SPDX-License-Identifier: Apache-2.0 */
/* EyeLike: ones on a diagonal, in the shape of the input. */
#include "op/dtype_attr.h"
#include "op/move.h"

extern const struct ew_op ew_op_eye_like;

struct attr {
    int dtype; /* enum ew_dtype */
    int64_t k;
};

static const struct ew_field attrs[] = {
    {.name = "dtype",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct attr, dtype),
     .def = "float32",
     .choices = ew_dtype_choices,
     .help = "element type"},
    {.name = "k",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct attr, k),
     .help = "which diagonal: 0 the main one, above it positive"},
    EW_FIELD_END};

static ew_err infer(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    EW_CHECK(c->in[0]->shape.rank == 2, EW_ERR_SHAPE, "the input has %d dimensions, must have 2",
             c->in[0]->shape.rank);
    c->out[0]->dtype = (enum ew_dtype)a->dtype;
    c->out[0]->shape = c->in[0]->shape;
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    const int64_t rows = c->out[0]->shape.dim[0], columns = c->out[0]->shape.dim[1];
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            const int64_t v = j - i == a->k;
            ew_tensor_store_int(c->out[0], i * columns + j, 1, &v);
        }
    }
    return EW_OK;
}

/* Without dtype the input's type. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    enum ew_dtype dtype;
    EW_TRY(ew_dtype_attr(n, "dtype", g->values[n->in[0]].t.dtype, &dtype));
    const struct attr attr = {.dtype = (int)dtype, .k = ew_onnx_int(n, "k", 0)};
    return ew_onnx_import_default(g, &ew_op_eye_like, n, &attr, out);
}

static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct attr *a = g->nodes[node].attr;
    return ew_onnx_set_int(n, "dtype", ew_dtype_onnx((enum ew_dtype)a->dtype));
}

static const struct ew_op_case cases[] = {
    {.name = "main", .in = {{"3x4"}}, .n_in = 1, .out_shape = "3x4"},
    {.name = "below", .attrs = "dtype=int32 k=-1", .in = {{"3x3"}}, .n_in = 1, .out_shape = "3x3"},
};

const struct ew_op ew_op_eye_like = {
    .name = "eye_like",
    .help = "ones on a diagonal",
    .flags = EW_OP_SHAPE_ONLY,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .onnx = {.type = "EyeLike", .import = import, .export = export_node},
    EW_OP_CASES(cases),
};
