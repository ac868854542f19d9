/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in float16 and bfloat16, as tools write them for GPUs.  There are no such kernels,
 * so they are computed in float32 between casts, as ONNX Runtime does on CPUs.  Other operators
 * support halves. */
#include "format/onnx_import.h"
#include "graph/ops.h"
#include "op/shape_attr.h"

static bool is_half(enum ew_dtype t)
{
    return t == EW_F16 || t == EW_BF16;
}

/* Converts a constant at once, without a cast node. */
static ew_err widen_constant(struct ew_graph *g, int *value)
{
    const struct ew_value v = g->values[*value];
    struct ew_tensor t = {.dtype = EW_F32, .shape = v.t.shape};
    const int64_t n = ew_tensor_count(&t);
    float *to = ew_arena_alloc(&g->arena, ew_tensor_bytes(&t));
    EW_CHECK(to, EW_ERR_MEMORY, "no memory for %s in float32", v.name);
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)ew_tensor_get(&v.t, i);
    t.data = to;
    EW_TRY(ew_graph_const(g, v.name, v.kind, &t, false, value));
    g->values[*value].literal = v.literal;
    return EW_OK;
}

static ew_err cast(struct ew_graph *g, enum ew_dtype to, int *value)
{
    const struct ew_cast_attr attr = {.to = (int)to};
    const int from = *value;
    return ew_graph_add(g, &ew_op_cast, NULL, &attr, EW_INPUTS(from), value);
}

ew_err ew_onnx_widen(struct ew_graph *g, const struct ew_op *op, int *in, int n_in,
                     enum ew_dtype *was)
{
    *was = EW_F32;
    if (n_in == 0 || in[0] < 0 || !is_half(g->values[in[0]].t.dtype) ||
        (op != &ew_op_conv && op != &ew_op_conv_transpose && op != &ew_op_deform_conv))
        return EW_OK;
    *was = g->values[in[0]].t.dtype;
    for (int i = 0; i < n_in; i++) {
        const struct ew_value *v = in[i] < 0 ? NULL : &g->values[in[i]];
        if (v && v->t.dtype == *was)
            EW_TRY(v->kind == EW_VALUE_CONST && v->t.data ? widen_constant(g, &in[i])
                                                          : cast(g, EW_F32, &in[i]));
    }
    return EW_OK;
}

ew_err ew_onnx_narrow(struct ew_graph *g, enum ew_dtype was, int *out, int n_out)
{
    for (int i = 0; i < n_out && was != EW_F32; i++)
        if (out[i] >= 0 && g->values[out[i]].t.dtype == EW_F32)
            EW_TRY(cast(g, was, &out[i]));
    return EW_OK;
}
