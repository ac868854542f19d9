/* SPDX-License-Identifier: Apache-2.0 */
/* Clip: x between two bounds, either of which may be absent.  ReLU6 is clip(x, 0, 6). */
#include "graph/onnx.h"
#include "graph/ops.h"
#include "op/pointwise.h"

static ew_err infer(const struct ew_call *c)
{
    EW_TRY(ew_types_check(c, 0, EW_TYPES_NUMBER));
    for (int i = 1; i < c->n_in; i++) {
        if (!c->in[i])
            continue;
        /* Opset 6 has float32 attributes for bounds, whatever x is. */
        if (!ew_dtype_is_float(c->in[0]->dtype) || !ew_dtype_is_float(c->in[i]->dtype))
            EW_TRY(ew_types_same(c, i));
        EW_CHECK(ew_tensor_count(c->in[i]) == 1, EW_ERR_SHAPE, "bound %d has %lld elements", i,
                 (long long)ew_tensor_count(c->in[i]));
    }
    c->out[0]->dtype = c->in[0]->dtype;
    c->out[0]->shape = c->in[0]->shape;
    return EW_OK;
}

static double bound(const struct ew_call *c, int slot, double none)
{
    const struct ew_tensor *t = ew_call_in(c, slot);
    return t ? ew_tensor_get(t, 0) : none;
}

static void forward_float(const struct ew_call *c)
{
    const double lo = bound(c, 1, -INFINITY), hi = bound(c, 2, INFINITY);
    double v[EW_CHUNK];
    const int64_t count = ew_tensor_count(c->in[0]);
    for (int64_t at = 0; at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        ew_tensor_load(c->in[0], at, n, v);
        for (int64_t i = 0; i < n; i++) {
            v[i] = v[i] < lo ? lo : v[i]; /* a NaN stays one */
            v[i] = v[i] > hi ? hi : v[i];
        }
        ew_tensor_store(c->out[0], at, n, v);
    }
}

/* In int64, with the sign bit of uint64 flipped, which preserves order. */
static void forward_int(const struct ew_call *c)
{
    const struct ew_tensor *lo = ew_call_in(c, 1), *hi = ew_call_in(c, 2);
    const uint64_t turn = c->in[0]->dtype == EW_U64 ? (uint64_t)1 << 63 : 0;
    const int64_t low = lo ? (int64_t)((uint64_t)ew_tensor_get_int(lo, 0) ^ turn) : INT64_MIN;
    const int64_t high = hi ? (int64_t)((uint64_t)ew_tensor_get_int(hi, 0) ^ turn) : INT64_MAX;
    int64_t v[EW_CHUNK];
    const int64_t count = ew_tensor_count(c->in[0]);
    for (int64_t at = 0; at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        ew_tensor_load_int(c->in[0], at, n, v);
        for (int64_t i = 0; i < n; i++) {
            const int64_t x = (int64_t)((uint64_t)v[i] ^ turn);
            v[i] = (int64_t)((uint64_t)ew_min_i64(ew_max_i64(x, low), high) ^ turn);
        }
        ew_tensor_store_int(c->out[0], at, n, v);
    }
}

static ew_err forward(const struct ew_call *c)
{
    if (ew_dtype_is_float(c->in[0]->dtype))
        forward_float(c);
    else
        forward_int(c);
    return EW_OK;
}

/* From the output: at a bound the gradient goes to the bound, strictly between to x. */
static ew_err backward(const struct ew_call *c)
{
    const double lo = bound(c, 1, -INFINITY), hi = bound(c, 2, INFINITY);
    double y[EW_CHUNK], g[EW_CHUNK], to_lo = 0, to_hi = 0;
    if (!c->dout[0])
        return EW_OK;
    const int64_t count = ew_tensor_count(c->dout[0]);
    for (int64_t at = 0; at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        ew_tensor_load(c->out[0], at, n, y);
        ew_tensor_load(c->dout[0], at, n, g);
        for (int64_t i = 0; i < n; i++) {
            to_hi += y[i] >= hi ? g[i] : 0;
            to_lo += y[i] <= lo && y[i] < hi ? g[i] : 0;
            g[i] = y[i] > lo && y[i] < hi ? g[i] : 0;
        }
        if (c->din[0])
            ew_tensor_accumulate(c->din[0], at, n, g);
    }
    if (c->n_in > 1 && c->din[1])
        ew_tensor_accumulate(c->din[1], 0, 1, &to_lo);
    if (c->n_in > 2 && c->din[2])
        ew_tensor_accumulate(c->din[2], 0, 1, &to_hi);
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 2 * ew_tensor_count(c->out[0]);
}

/* The bound that is an attribute, in the type of x, as Clip has it from opset 11 on; -1: none. */
static ew_err bound_of(struct ew_graph *g, const struct ew_onnx_node *n, int slot, const char *name,
                       int *out)
{
    EW_TRY(ew_onnx_input_or_attr(g, n, slot, name, out));
    const enum ew_dtype x = n->in[0] >= 0 ? g->values[n->in[0]].t.dtype : EW_F32;
    const struct ew_tensor *t = *out >= 0 ? &g->values[*out].t : NULL;
    if (slot < n->n_in || !t || t->dtype == x || !ew_dtype_is_float(x) ||
        !ew_dtype_is_float(t->dtype) || ew_tensor_count(t) != 1)
        return EW_OK;
    return ew_onnx_scalar(g, x, ew_tensor_get(t, 0), out);
}

/* Before opset 11 the bounds are attributes. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    if (n->n_in < 1 || n->opset >= 11)
        return ew_onnx_import_default(g, &ew_op_clip, n, NULL, out);
    int in[3] = {n->in[0], -1, -1};
    EW_TRY(bound_of(g, n, 1, "min", &in[1]));
    EW_TRY(bound_of(g, n, 2, "max", &in[2]));
    const struct ew_onnx_node own = ew_onnx_with_inputs(n, in, 3);
    return ew_onnx_import_default(g, &ew_op_clip, &own, "", out);
}

static const struct ew_op_case cases[] = {
    {.name = "relu6",
     .in = {{"2x9", EW_F32, EW_FILL_DISTINCT},
            {"", EW_F32, EW_FILL_VALUES, .values = "-0.25"},
            {"", EW_F32, EW_FILL_VALUES, .values = "0.45"}},
     .n_in = 3,
     .out_shape = "2x9"},
    {.name = "lower",
     .in = {{"7", EW_F32, EW_FILL_AWAY}, {"", EW_F32, EW_FILL_VALUES, .values = "0.05"}},
     .n_in = 2,
     .out_shape = "7"},
    {.name = "upper",
     .in = {{"7", EW_F32, EW_FILL_AWAY}, {NULL}, {"", EW_F32, EW_FILL_VALUES, .values = "0.05"}},
     .n_in = 3,
     .out_shape = "7"},
    {.name = "none", .in = {{"7"}}, .n_in = 1, .out_shape = "7"},
    {.name = "int",
     .in = {{"7", EW_S8},
            {"", EW_S8, EW_FILL_VALUES, .values = "-1"},
            {"", EW_S8, EW_FILL_VALUES, .values = "1"}},
     .n_in = 3,
     .out_shape = "7"},
    {.name = "uint64",
     .in = {{"3", EW_U64, EW_FILL_VALUES, .values = "0,5,9"},
            {NULL},
            {"", EW_U64, EW_FILL_VALUES, .values = "6"}},
     .n_in = 3,
     .out_shape = "3"},
};

const struct ew_op ew_op_clip = {
    .name = "clip",
    .help = "x between a lower and an upper bound",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_OUT | EW_SAVE_IN1 | EW_SAVE_IN2,
    .min_in = 1,
    .max_in = 3,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Clip", .import = import},
    EW_OP_CASES(cases),
};
