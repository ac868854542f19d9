/* SPDX-License-Identifier: Apache-2.0 */
/* Cast: to another element type.  Floats become integers by truncation and saturate; integers wrap.
 * CastLike is imported as a Cast to the type that its second input has. */
#include <string.h>

#include "op/dtype_attr.h"
#include "op/move.h"
#include "op/shape_attr.h"

#define CHUNK 256

extern const struct ew_op ew_op_cast;

static const struct ew_field attrs[] = {{.name = "to",
                                         .type = EW_FIELD_ENUM,
                                         .offset = offsetof(struct ew_cast_attr, to),
                                         .def = "float32",
                                         .choices = ew_dtype_choices,
                                         .help = "element type"},
                                        EW_FIELD_END};

static ew_err infer(const struct ew_call *c)
{
    const struct ew_cast_attr *a = c->attr;
    c->out[0]->dtype = (enum ew_dtype)a->to;
    c->out[0]->shape = c->in[0]->shape;
    return EW_OK;
}

/* Through double if either side is floating; integers, which a double may not hold, exactly. */
static ew_err forward(const struct ew_call *c)
{
    const struct ew_tensor *from = c->in[0];
    struct ew_tensor *to = c->out[0];
    const bool exact =
        !ew_dtype_is_float(from->dtype) && (from->dtype != EW_U64 || !ew_dtype_is_float(to->dtype));
    const int64_t count = ew_tensor_count(from);
    for (int64_t at = 0; at < count; at += CHUNK) {
        const int64_t n = ew_min_i64(CHUNK, count - at);
        double real[CHUNK];
        int64_t whole[CHUNK];
        if (exact) {
            ew_tensor_load_int(from, at, n, whole);
            ew_tensor_store_int(to, at, n, whole);
        } else {
            ew_tensor_load(from, at, n, real);
            ew_tensor_store(to, at, n, real);
        }
    }
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    const int64_t count = ew_tensor_count(c->din[0]);
    for (int64_t at = 0; at < count; at += CHUNK) {
        const int64_t n = ew_min_i64(CHUNK, count - at);
        double g[CHUNK];
        ew_tensor_load(c->dout[0], at, n, g);
        ew_tensor_accumulate(c->din[0], at, n, g);
    }
    return EW_OK;
}

/* `saturate` concerns the 8-bit floats only, which are not supported. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    enum ew_dtype to;
    if (strcmp(n->type, "CastLike") == 0) {
        EW_CHECK(n->n_in == 2 && n->in[1] >= 0, EW_ERR_FORMAT, "CastLike needs two inputs");
        to = g->values[n->in[1]].t.dtype;
    } else {
        EW_CHECK(ew_onnx_attr(n, "to"), EW_ERR_FORMAT, "has no attribute 'to'");
        EW_TRY(ew_dtype_attr(n, "to", EW_F32, &to));
    }
    const struct ew_cast_attr attr = {.to = (int)to};
    const struct ew_onnx_node own = ew_onnx_with_inputs(n, n->in, 1);
    return ew_onnx_import_default(g, &ew_op_cast, &own, &attr, out);
}

static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_cast_attr *a = g->nodes[node].attr;
    return ew_onnx_set_int(n, "to", ew_dtype_onnx((enum ew_dtype)a->to));
}

static const char *const also[] = {"CastLike", NULL};

static const struct ew_op_case cases[] = {
    {.name = "to double", .attrs = "to=float64", .in = {{"2x3"}}, .n_in = 1, .out_shape = "2x3"},
    {.name = "to int", .attrs = "to=int32", .in = {{"300"}}, .n_in = 1, .out_shape = "300"},
    {.name = "to half", .attrs = "to=float16", .in = {{"7"}}, .n_in = 1, .out_shape = "7"},
    {.name = "to bool", .attrs = "to=bool", .in = {{"7", EW_S64}}, .n_in = 1, .out_shape = "7"},
    {.name = "wrap", .attrs = "to=uint8", .in = {{"7", EW_S64}}, .n_in = 1, .out_shape = "7"},
};

const struct ew_op ew_op_cast = {
    .name = "cast",
    .help = "to another element type",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_cast_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Cast", .also = also, .import = import, .export = export_node},
    EW_OP_CASES(cases),
};
