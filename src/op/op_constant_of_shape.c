/* SPDX-License-Identifier: Apache-2.0 */
/* ConstantOfShape: a constant fill.  ONNX's Constant, which becomes a constant of the graph, is
 * imported here too. */
#include <string.h>

#include "op/dtype_attr.h"
#include "op/move.h"

extern const struct ew_op ew_op_constant_of_shape;

struct attr {
    int dtype;     /* enum ew_dtype */
    double value;  /* for floating types */
    int64_t whole; /* for the others */
};

static const struct ew_field attrs[] = {{.name = "dtype",
                                         .type = EW_FIELD_ENUM,
                                         .offset = offsetof(struct attr, dtype),
                                         .def = "float32",
                                         .choices = ew_dtype_choices,
                                         .help = "element type"},
                                        {.name = "value",
                                         .type = EW_FIELD_FLOAT,
                                         .offset = offsetof(struct attr, value),
                                         .help = "every element, for floating types"},
                                        {.name = "whole",
                                         .type = EW_FIELD_INT,
                                         .offset = offsetof(struct attr, whole),
                                         .help = "every element, for integers"},
                                        EW_FIELD_END};

static ew_err infer(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    struct ew_ints shape;
    EW_TRY(ew_tensor_ints(c->in[0], "shape", &shape));
    EW_CHECK(shape.n <= EW_MAX_RANK, EW_ERR_LIMIT, "shape has %d dimensions", shape.n);
    c->out[0]->dtype = (enum ew_dtype)a->dtype;
    c->out[0]->shape.rank = shape.n;
    for (int i = 0; i < shape.n; i++)
        c->out[0]->shape.dim[i] = shape.v[i];
    return EW_OK;
}

static void store(const struct attr *a, struct ew_tensor *t, int64_t i)
{
    if (ew_dtype_is_float(t->dtype))
        ew_tensor_store(t, i, 1, &a->value);
    else
        ew_tensor_store_int(t, i, 1, &a->whole);
}

static ew_err forward(const struct ew_call *c)
{
    for (int64_t i = 0; i < ew_tensor_count(c->out[0]); i++)
        store(c->attr, c->out[0], i);
    return EW_OK;
}

static ew_err import_constant(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    static const char *const kinds[] = {"value", "value_int", "value_ints", "value_float",
                                        "value_floats"};
    *out = -1;
    for (size_t i = 0; i < EW_COUNT(kinds) && *out < 0; i++)
        EW_TRY(ew_onnx_input_or_attr(g, n, n->n_in, kinds[i], out));
    EW_CHECK(*out >= 0, EW_ERR_UNSUPPORTED, "must be a tensor or numbers, not strings or sparse");
    return EW_OK;
}

static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    if (strcmp(n->type, "Constant") == 0)
        return import_constant(g, n, out);
    struct attr attr = {.dtype = EW_F32};
    const struct ew_onnx_attr *a = ew_onnx_attr(n, "value");
    if (a) {
        EW_CHECK(a->type == EW_ONNX_TENSOR && ew_tensor_count(&a->tensor) == 1 && a->tensor.data,
                 EW_ERR_FORMAT, "value must be a tensor of one element");
        attr.dtype = (int)a->tensor.dtype;
        attr.value = ew_tensor_get(&a->tensor, 0);
        attr.whole = ew_tensor_get_int(&a->tensor, 0);
    }
    return ew_onnx_import_default(g, &ew_op_constant_of_shape, n, &attr, out);
}

static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct attr *a = g->nodes[node].attr;
    int64_t room = 0;
    struct ew_tensor t = {.dtype = (enum ew_dtype)a->dtype, .shape = {1, {1}}, .data = &room};
    store(a, &t, 0);
    return ew_onnx_set_tensor(n, "value", &t);
}

static const char *const rename[] = {"dtype", NULL, "value", NULL, "whole", NULL, NULL};

static const char *const also[] = {"Constant", NULL};

static const struct ew_op_case cases[] = {
    {.name = "zeros",
     .in = {{"2", EW_S64, EW_FILL_VALUES, .values = "2,3", .constant = true}},
     .n_in = 1,
     .out_shape = "2x3"},
    {.name = "int",
     .attrs = "dtype=int64 whole=9007199254740993",
     .in = {{"1", EW_S64, EW_FILL_VALUES, .values = "4", .constant = true}},
     .n_in = 1,
     .out_shape = "4"},
    {.name = "scalar",
     .attrs = "dtype=float64 value=0.5",
     .in = {{"0", EW_S64, .constant = true}},
     .n_in = 1,
     .out_shape = ""},
    {.name = "nothing",
     .in = {{"2", EW_S64, EW_FILL_VALUES, .values = "0,3", .constant = true}},
     .n_in = 1,
     .out_shape = "0x3"},
};

const struct ew_op ew_op_constant_of_shape = {
    .name = "constant_of_shape",
    .help = "one value everywhere",
    .flags = EW_OP_NO_CDL,
    .min_in = 1,
    .max_in = 1,
    .known_in = 1 << 0,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .onnx = {.type = "ConstantOfShape",
             .rename = rename,
             .also = also,
             .sourceless = "Constant",
             .import = import,
             .export = export_node},
    EW_OP_CASES(cases),
};
