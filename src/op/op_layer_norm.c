/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNormalization: normalises over the dimensions from `axis` on to mean 0 and variance 1, then
 * scale and bias. */
#include <string.h>

#include "graph/onnx.h"
#include "graph/ops.h"
#include "op/math_attr.h"
#include "op/norm.h"
#include "op/shape_attr.h"
#include "op/types.h"

extern const struct ew_op ew_op_layer_norm;

/* clang-format off */
static const struct ew_field attrs[] = {
    {.name = "axis", .type = EW_FIELD_INT, .offset = offsetof(struct ew_layer_norm_attr, axis),
     .def = "-1", .help = "the first dimension that is normalised"},
    {.name = "eps", .type = EW_FIELD_FLOAT, .offset = offsetof(struct ew_layer_norm_attr, eps),
     .def = "1e-5", .help = "added to the variance"},
    {.name = "stash_type", .type = EW_FIELD_INT,
     .offset = offsetof(struct ew_layer_norm_attr, stash_type), .def = "1",
     .help = "ONNX's type of the statistics"},
    EW_FIELD_END};
/* clang-format on */

static ew_err resolve(const struct ew_call *c, struct ew_norm_sets *out, int *axis)
{
    const struct ew_layer_norm_attr *a = c->attr;
    const struct ew_shape *x = &c->in[0]->shape;
    EW_TRY(ew_shape_axis(a->axis, x->rank, axis));
    *out = (struct ew_norm_sets){.outer = ew_shape_span(x, 0, *axis),
                                 .rows = 1,
                                 .inner = 1,
                                 .run = ew_shape_span(x, *axis, x->rank),
                                 .eps = a->eps};
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    struct ew_norm_sets s;
    int axis;
    for (int i = 0; i < c->n_in; i++)
        EW_TRY(ew_types_check(c, i, EW_TYPES_FLOAT));
    EW_TRY(resolve(c, &s, &axis));
    for (int i = 1; i < c->n_in; i++) {
        const int64_t n = c->in[i] ? ew_tensor_count(c->in[i]) : 1;
        EW_CHECK(n == s.run || n == 1, EW_ERR_SHAPE,
                 "%s has %lld elements for %lld normalised ones", i == 1 ? "scale" : "bias",
                 (long long)n, (long long)s.run);
    }
    c->out[0]->shape = c->in[0]->shape;
    for (int i = 1; i < c->n_out; i++) {
        if (!c->out[i])
            continue;
        c->out[i]->dtype = c->in[0]->dtype == EW_F64 ? EW_F64 : EW_F32;
        c->out[i]->shape = c->in[0]->shape;
        for (int d = axis; d < c->in[0]->shape.rank; d++)
            c->out[i]->shape.dim[d] = 1;
    }
    return EW_OK;
}

static size_t aux(const struct ew_call *c)
{
    struct ew_norm_sets s;
    int axis;
    return resolve(c, &s, &axis) == EW_OK ? ew_norm_aux(c, &s) : 0;
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_norm_sets s;
    int axis;
    EW_TRY(resolve(c, &s, &axis));
    return ew_norm_forward(c, &s);
}

static ew_err backward(const struct ew_call *c)
{
    struct ew_norm_sets s;
    int axis;
    EW_TRY(resolve(c, &s, &axis));
    return ew_norm_backward(c, &s);
}

static const char *const renames[] = {"eps", "epsilon", NULL};

static ew_err join(struct ew_graph *g, const struct ew_op *op, int a, int b, int *out)
{
    return ew_graph_add(g, op, NULL, NULL, EW_INPUTS(a, b), out);
}

static ew_err cast(struct ew_graph *g, int value, enum ew_dtype to, int *out)
{
    const struct ew_cast_attr attr = {.to = (int)to};
    return ew_graph_add(g, &ew_op_cast, NULL, &attr, EW_INPUTS(value), out);
}

/* x / sqrt(mean(x^2) + eps) * scale, the mean from an axis on: in float32 at least, as stash_type
 * says. */
static ew_err add_rms(struct ew_graph *g, const struct ew_onnx_node *n, int x, int scale, int *out)
{
    const struct ew_tensor t = g->values[x].t;
    const bool half = t.dtype == EW_F16 || t.dtype == EW_BF16;
    const struct ew_reduce_attr keep = {.keepdims = true};
    int64_t axes[EW_MAX_RANK];
    int axis, eps, along, root;
    EW_TRY(ew_shape_axis(ew_onnx_int(n, "axis", -1), t.shape.rank, &axis));
    for (int i = axis; i < t.shape.rank; i++)
        axes[i - axis] = i;
    if (half)
        EW_TRY(cast(g, x, EW_F32, &x));
    EW_TRY(ew_graph_const_ints(g, NULL, axes, t.shape.rank - axis, &along));
    EW_TRY(
        ew_onnx_scalar(g, g->values[x].t.dtype, ew_onnx_float(n, "epsilon", (double)1e-5f), &eps));
    EW_TRY(join(g, &ew_op_mul, x, x, &root));
    const int squares[] = {root, along};
    EW_TRY(ew_graph_add(g, &ew_op_reduce_mean, NULL, &keep, ew_inputs(squares, 2), &root));
    EW_TRY(join(g, &ew_op_add, root, eps, &root));
    const int mean = root;
    EW_TRY(ew_graph_add(g, &ew_op_sqrt, NULL, NULL, EW_INPUTS(mean), &root));
    EW_TRY(join(g, &ew_op_div, x, root, &x));
    if (half)
        EW_TRY(cast(g, x, t.dtype, &x));
    return ew_graph_add(g, &ew_op_mul, n->name, NULL, EW_INPUTS(x, scale), out);
}

/* RMSNormalization of opset 23, which ONNX Runtime has had as SimplifiedLayerNormalization. */
static ew_err import_rms(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    EW_CHECK(n->n_in == 2 && n->in[1] >= 0, EW_ERR_FORMAT, "has %d inputs, must be 2", n->n_in);
    EW_CHECK(n->n_out == 1 || !n->out_used[1], EW_ERR_UNSUPPORTED, "deviation as output");
    return add_rms(g, n, n->in[0], n->in[1], out);
}

/* ONNX Runtime's SkipLayerNormalization: (input + skip + bias) normalised along its last axis, with
 * gamma and beta; the fourth output is that sum. */
static ew_err import_skip(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    enum { INPUT, SKIP, GAMMA, BETA, BIAS };
    const struct ew_layer_norm_attr attr = {
        .axis = -1, .eps = ew_onnx_float(n, "epsilon", (double)1e-12f), .stash_type = 1};
    EW_CHECK(n->n_in >= 3 && n->n_in <= 5 && n->in[GAMMA] >= 0, EW_ERR_FORMAT,
             "has %d inputs, must be 3 to 5", n->n_in);
    EW_CHECK(n->n_out == 1 || n->n_out == 4, EW_ERR_UNSUPPORTED, "%d outputs", n->n_out);
    EW_CHECK(n->n_out == 1 || (!n->out_used[1] && !n->out_used[2]), EW_ERR_UNSUPPORTED,
             "mean and deviation as outputs");
    int sum[2] = {n->in[INPUT], n->in[SKIP]};
    EW_TRY(ew_graph_add(g, &ew_op_add, NULL, NULL, ew_inputs(sum, 2), &sum[0]));
    sum[1] = n->n_in > BIAS ? n->in[BIAS] : -1;
    if (sum[1] >= 0)
        EW_TRY(ew_graph_add(g, &ew_op_add, NULL, NULL, ew_inputs(sum, 2), &sum[0]));
    const int in[3] = {sum[0], n->in[GAMMA], n->n_in > BETA ? n->in[BETA] : -1};
    if (n->n_out == 4)
        out[3] = sum[0];
    return ew_graph_add(g, &ew_op_layer_norm, n->name, &attr, ew_inputs(in, in[2] < 0 ? 2 : 3),
                        out);
}

/* Accepted at any opset, since ONNX Runtime had it before ONNX. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    if (*n->domain && strcmp(n->type, "SkipLayerNormalization") == 0)
        return import_skip(g, n, out);
    if (strcmp(n->type, "LayerNormalization") != 0)
        return import_rms(g, n, out);
    return ew_onnx_import_default(g, &ew_op_layer_norm, n, NULL, out);
}

static const char *const also[] = {"com.microsoft:SkipLayerNormalization",
                                   "com.microsoft:LayerNormalization", "RMSNormalization",
                                   "SimplifiedLayerNormalization", NULL};

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "last", .in = {{"2x3x5"}, {"5"}, {"5"}}, .n_in = 3, .out_shape = "2x3x5"},
    {.name = "no bias", .attrs = "axis=1", .in = {{"2x3x4"}, {"3x4"}}, .n_in = 2,
     .out_shape = "2x3x4"},
    {.name = "all", .attrs = "axis=0 eps=1e-2", .in = {{"3x4"}, {"3x4"}, {"3x4"}}, .n_in = 3,
     .out_shape = "3x4"},
    {.name = "wide", .in = {{"5x67"}, {"67"}, {"67"}}, .n_in = 3, .out_shape = "5x67"},
    {.name = "one scale", .in = {{"2x300"}, {"1"}, {"1"}}, .n_in = 3, .out_shape = "2x300"},
    {.name = "statistics", .in = {{"2x3x4", .no_grad = true}, {"4"}, {"4"}}, .n_in = 3, .n_out = 3,
     .out_shape = "2x3x4"},
};
/* clang-format on */

const struct ew_op ew_op_layer_norm = {
    .name = "layer_norm",
    .help = "dimensions from an axis on to mean 0 and variance 1, then scale and bias",
    .saves = EW_SAVE_IN0 | EW_SAVE_AUX,
    .min_in = 2,
    .max_in = 3,
    .max_out = 3,
    .param_in = 1 << 1 | 1 << 2,
    .attr_size = sizeof(struct ew_layer_norm_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_norm_cost,
    .aux = aux,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "LayerNormalization",
             .since = 17,
             .rename = renames,
             .also = also,
             .import = import},
    EW_OP_CASES(cases),
};
