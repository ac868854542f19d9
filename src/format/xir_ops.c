/* SPDX-License-Identifier: Apache-2.0 */
/* Export of nodes as XIR operators.  XIR has width before height in windows; padding is left,
 * right, top, bottom; filters are [O, h, w, I], of depthwise convolutions [1, h, w, C]. */
#include <math.h>

#include "format/xir.h"
#include "format/xir_out.h"
#include "graph/layout.h"
#include "graph/ops.h"
#include "graph/shuffle.h"
#include "op/conv.h"
#include "op/dpu.h"
#include "op/math_attr.h"
#include "op/shape_attr.h"

/* Adds the operator of a node with its first input, as its output value. */
static ew_err put_plain(struct ew_xir_out *x, int node, const char *type, Ew__XirOp **out)
{
    const struct ew_node *n = &x->g->nodes[node];
    const char *from;
    EW_TRY(ew_xir_value(x, n->in[0], NULL, &from));
    EW_TRY(ew_xir_op(x, n->name, type, &x->g->values[n->out[0]].t.shape, out));
    ew_xir_arg(x, *out, "input", &from, 1);
    x->op[n->out[0]] = (*out)->op_name;
    return EW_OK;
}

/* ---- Windows ---- */

static void put_window(struct ew_xir_out *x, Ew__XirOp *op, const struct ew_window *w, bool ceil)
{
    const int h = EW_WINDOW_DIMS - 2, v = EW_WINDOW_DIMS - 1;
    const int64_t kernel[] = {w->kernel[v], w->kernel[h]};
    const int64_t stride[] = {w->stride[v], w->stride[h]};
    const int64_t pad[] = {w->pad[v], w->pad_end[v], w->pad[h], w->pad_end[h]};
    ew_xir_ints(x, op, "kernel", kernel, 2);
    ew_xir_ints(x, op, "stride", stride, 2);
    ew_xir_ints(x, op, "pad", pad, 4);
    ew_xir_text(x, op, "pad_mode", ceil ? "CEIL" : "FLOOR");
}

static ew_err check_images(const struct ew_xir_out *x, const struct ew_node *n)
{
    const int rank = x->g->values[n->in[0]].t.shape.rank;
    EW_CHECK(rank == 4, EW_ERR_UNSUPPORTED, "its input has %d dimensions, XIR's images have 4",
             rank);
    return EW_OK;
}

static ew_err put_conv(struct ew_xir_out *x, int node)
{
    static const int channels_behind[] = {3, 1, 2, 0};
    const struct ew_node *n = &x->g->nodes[node];
    const struct ew_conv_attr *a = n->attr;
    struct ew_conv_sizes s;
    Ew__XirOp *op;
    const char *weights, *bias = NULL;
    EW_TRY(check_images(x, n));
    EW_TRY(ew_conv_geometry(&a->win, a->groups, &x->g->values[n->in[0]].t.shape,
                            &x->g->values[n->in[1]].t.shape, &s));
    const bool depthwise = s.groups > 1 && s.groups == s.w.channels && s.filters == s.w.channels;
    EW_TRY(ew_xir_value(x, n->in[1], depthwise ? channels_behind : NULL, &weights));
    if (n->n_in > 2 && n->in[2] >= 0)
        EW_TRY(ew_xir_value(x, n->in[2], NULL, &bias));
    EW_TRY(put_plain(x, node, depthwise ? "depthwise-conv2d" : "conv2d", &op));
    ew_xir_arg(x, op, "weights", &weights, 1);
    if (bias)
        ew_xir_arg(x, op, "bias", &bias, 1);
    put_window(x, op, &s.w, false);
    const int64_t dilation[] = {s.w.dilation[2], s.w.dilation[1]};
    ew_xir_ints(x, op, "dilation", dilation, 2);
    if (s.groups > 1 && !depthwise)
        ew_xir_int(x, op, "group", s.groups);
    return EW_OK;
}

static ew_err put_max_pool(struct ew_xir_out *x, int node)
{
    const struct ew_node *n = &x->g->nodes[node];
    const struct ew_shape *in = &x->g->values[n->in[0]].t.shape;
    const bool global = n->op == &ew_op_global_max_pool;
    const struct ew_pool_attr *a = n->attr;
    struct ew_window w;
    Ew__XirOp *op;
    EW_TRY(check_images(x, n));
    if (global)
        ew_window_global(in, &w);
    else
        EW_TRY(ew_window_resolve(&a->win, in, a->win.kernel.v, a->ceil_mode, &w));
    for (int i = 1; i < EW_WINDOW_DIMS; i++)
        EW_CHECK(w.dilation[i] == 1, EW_ERR_UNSUPPORTED, "a pool with dilation is not in XIR");
    EW_TRY(put_plain(x, node, "maxpool2d", &op));
    put_window(x, op, &w, !global && a->ceil_mode);
    ew_xir_bool(x, op, "global", global);
    return EW_OK;
}

/* Adds the DPU's correction behind a mean, as the vendor's quantiser does: mean * n * factor /
 * 2^shift. */
static ew_err put_factor(struct ew_xir_out *x, int node, int64_t height, int64_t width)
{
    const struct ew_node *n = &x->g->nodes[node];
    const struct ew_dpu_mean m = ew_dpu_mean(height, width);
    const struct ew_shape one = {1, {1}};
    const char *in[2] = {x->op[n->out[0]]};
    float *factor = ew_arena_alloc(&x->arena, sizeof(*factor));
    Ew__XirOp *op;
    EW_CHECK(factor, EW_ERR_MEMORY, "no memory");
    *factor = (float)((double)(height * width) * m.factor / (double)((int64_t)1 << m.shift));
    EW_TRY(ew_xir_const(x, n->name, &one, factor, &in[1]));
    EW_TRY(ew_xir_op(x, n->name, "mul", &x->g->values[n->out[0]].t.shape, &op));
    ew_xir_arg(x, op, "input", in, 2);
    x->op[n->out[0]] = op->op_name;
    return EW_OK;
}

static ew_err average_window(const struct ew_graph *g, const struct ew_node *n, struct ew_window *w,
                             bool *ceil, bool *padded)
{
    const struct ew_shape *in = &g->values[n->in[0]].t.shape;
    const struct ew_adaptive_attr *to = n->attr;
    *ceil = *padded = false;
    ew_window_global(in, w);
    if (n->op == &ew_op_average_pool) {
        const struct ew_pool_attr *a = n->attr;
        *ceil = a->ceil_mode;
        *padded = a->count_include_pad;
        return ew_window_resolve(&a->win, in, a->win.kernel.v, a->ceil_mode, w);
    }
    for (int i = 0; n->op == &ew_op_adaptive_avg_pool && i < 2; i++) {
        EW_CHECK(in->dim[1 + i] % to->size.v[i] == 0, EW_ERR_UNSUPPORTED,
                 "windows of different sizes are not in XIR");
        w->kernel[1 + i] = w->stride[1 + i] = in->dim[1 + i] / to->size.v[i];
    }
    return EW_OK;
}

static ew_err put_average(struct ew_xir_out *x, int node)
{
    const struct ew_node *n = &x->g->nodes[node];
    struct ew_window w;
    Ew__XirOp *op;
    bool ceil, padded;
    EW_TRY(check_images(x, n));
    EW_TRY(average_window(x->g, n, &w, &ceil, &padded));
    EW_TRY(put_plain(x, node, "avgpool2d", &op));
    put_window(x, op, &w, ceil);
    ew_xir_bool(x, op, "count_include_pad", padded);
    return put_factor(x, node, w.kernel[1], w.kernel[2]);
}

/* ---- Dense layers ---- */

static ew_err put_dense(struct ew_xir_out *x, int node)
{
    const struct ew_node *n = &x->g->nodes[node];
    const bool gemm = n->op == &ew_op_gemm;
    const struct ew_gemm_attr *a = n->attr;
    const char *in[2], *bias = NULL;
    Ew__XirOp *op;
    EW_CHECK(!gemm || (a->alpha >= 1 && a->alpha <= 1 && a->beta >= 1 && a->beta <= 1),
             EW_ERR_UNSUPPORTED, "factors of a dense layer are not in XIR");
    EW_TRY(ew_xir_value(x, n->in[0], NULL, &in[0]));
    EW_TRY(ew_xir_value(x, n->in[1], NULL, &in[1]));
    if (n->n_in > 2 && n->in[2] >= 0)
        EW_TRY(ew_xir_value(x, n->in[2], NULL, &bias));
    EW_TRY(ew_xir_op(x, n->name, "matmul", &x->g->values[n->out[0]].t.shape, &op));
    ew_xir_arg(x, op, "input", in, 2);
    if (bias)
        ew_xir_arg(x, op, "bias", &bias, 1);
    ew_xir_bool(x, op, "transpose_a", gemm && a->trans_a);
    ew_xir_bool(x, op, "transpose_b", gemm && a->trans_b);
    x->op[n->out[0]] = op->op_name;
    return EW_OK;
}

/* ---- Unary functions, sums, data movement ---- */

/* A hard sigmoid, followed by the correction for the DPU's 1/6 = 2731 / 2^14. */
static ew_err put_gate(struct ew_xir_out *x, int node, const char **out)
{
    const struct ew_node *n = &x->g->nodes[node];
    const struct ew_shape one = {1, {1}}, *shape = &x->g->values[n->out[0]].t.shape;
    float *factor = ew_arena_alloc(&x->arena, sizeof(*factor));
    const char *in[2];
    Ew__XirOp *op;
    EW_CHECK(factor, EW_ERR_MEMORY, "no memory");
    *factor = (float)EW_XIR_GATE_FACTOR;
    EW_TRY(put_plain(x, node, "hard-sigmoid", &op));
    in[0] = op->op_name;
    EW_TRY(ew_xir_const(x, n->name, &one, factor, &in[1]));
    EW_TRY(ew_xir_op(x, n->name, "mul", shape, &op));
    ew_xir_arg(x, op, "input", in, 2);
    *out = op->op_name;
    return EW_OK;
}

/* x * hard_sigmoid(x), with the sigmoid rounded to int8. */
static ew_err put_hard_swish(struct ew_xir_out *x, int node)
{
    const struct ew_node *n = &x->g->nodes[node];
    const struct ew_shape *shape = &x->g->values[n->out[0]].t.shape;
    const char *in[2];
    Ew__XirOp *op;
    EW_TRY(put_gate(x, node, &in[0]));
    EW_TRY(ew_xir_fix(x, in[0], shape, EW_DPU_GATE_POSITION, &in[0]));
    EW_TRY(ew_xir_value(x, n->in[0], NULL, &in[1]));
    EW_TRY(ew_xir_op(x, n->name, "mul", shape, &op));
    ew_xir_arg(x, op, "input", in, 2);
    x->op[n->out[0]] = op->op_name;
    return EW_OK;
}

static ew_err put_activation(struct ew_xir_out *x, int node)
{
    const struct ew_node *n = &x->g->nodes[node];
    struct ew_epilogue_attr act = {0};
    Ew__XirOp *op;
    EW_CHECK(ew_act_of_node(x->g, node, &act), EW_ERR_UNSUPPORTED, "its bounds are not known");
    switch (act.act) {
    case EW_ACT_RELU:
        return put_plain(x, node, "relu", &op);
    case EW_ACT_LEAKY:
        EW_TRY(put_plain(x, node, "leaky-relu", &op));
        ew_xir_float(x, op, "alpha", act.lo);
        return EW_OK;
    case EW_ACT_HARD_SIGMOID:
        EW_CHECK(fabs(act.lo - 1.0 / 6) < 1e-6 && fabs(act.hi - 0.5) < 1e-6, EW_ERR_UNSUPPORTED,
                 "XIR's hard sigmoid is clip(x / 6 + 0.5, 0, 1), not of %g x + %g", act.lo, act.hi);
        return put_gate(x, node, &x->op[n->out[0]]);
    case EW_ACT_HARD_SWISH:
        return put_hard_swish(x, node);
    case EW_ACT_CLIP:
        EW_CHECK(act.lo >= 0 && act.lo <= 0 && act.hi >= 6 && act.hi <= 6, EW_ERR_UNSUPPORTED,
                 "XIR has no clip but that of 0 to 6");
        return put_plain(x, node, "relu6", &op);
    default:
        return put_plain(x, node, n->op->name, &op); /* sigmoid, tanh: run on the host */
    }
}

static ew_err put_joined(struct ew_xir_out *x, int node)
{
    const struct ew_node *n = &x->g->nodes[node];
    const char **in = ew_arena_array(&x->arena, (size_t)n->n_in + 1, sizeof(*in));
    Ew__XirOp *op;
    EW_CHECK(in, EW_ERR_MEMORY, "no memory");
    for (int i = 0; i < n->n_in; i++)
        EW_TRY(ew_xir_value(x, n->in[i], NULL, &in[i]));
    EW_TRY(ew_xir_op(x, n->name, n->op->name, &x->g->values[n->out[0]].t.shape, &op));
    ew_xir_arg(x, op, "input", in, n->n_in);
    if (n->op == &ew_op_concat) {
        const int64_t axis = ((const struct ew_concat_attr *)n->attr)->axis;
        ew_xir_int(x, op, "axis", axis < 0 ? axis + x->g->values[n->in[0]].t.shape.rank : axis);
    }
    x->op[n->out[0]] = op->op_name;
    return EW_OK;
}

static void put_shape(struct ew_xir_out *x, Ew__XirOp *op, const struct ew_shape *s)
{
    ew_xir_ints(x, op, "shape", s->dim, s->rank);
}

/* A view keeps the `fix` of its input. */
static ew_err put_reshape(struct ew_xir_out *x, int node)
{
    const struct ew_node *n = &x->g->nodes[node];
    Ew__XirOp *op;
    EW_TRY(put_plain(x, node, "reshape", &op));
    put_shape(x, op, &x->g->values[n->out[0]].t.shape);
    return EW_OK;
}

static ew_err put_transpose(struct ew_xir_out *x, int node)
{
    const struct ew_node *n = &x->g->nodes[node];
    const struct ew_transpose_attr *a = n->attr;
    const int rank = x->g->values[n->in[0]].t.shape.rank;
    int64_t order[EW_MAX_RANK];
    Ew__XirOp *op;
    for (int i = 0; i < rank; i++)
        order[i] = a->perm.n ? a->perm.v[i] : rank - 1 - i;
    EW_TRY(put_plain(x, node, "transpose", &op));
    ew_xir_ints(x, op, "order", order, rank);
    return EW_OK;
}

/* [..., groups, k] to [..., k, groups]. */
static ew_err put_shuffle(struct ew_xir_out *x, int node)
{
    const struct ew_node *n = &x->g->nodes[node];
    const int64_t groups = ((const struct ew_channel_shuffle_attr *)n->attr)->groups;
    struct ew_shape s = x->g->values[n->out[0]].t.shape, parts = s;
    const int last = s.rank - 1;
    int64_t order[EW_MAX_RANK];
    Ew__XirOp *op[3];
    EW_CHECK(s.rank < EW_MAX_RANK, EW_ERR_LIMIT, "it has %d dimensions", s.rank);
    parts.rank++;
    parts.dim[last] = groups;
    parts.dim[last + 1] = s.dim[last] / groups;
    EW_TRY(put_plain(x, node, "reshape", &op[0]));
    put_shape(x, op[0], &parts);
    for (int i = 0; i < parts.rank; i++) {
        op[0]->output_tensor->tensor_dim[i] = (uint32_t)parts.dim[i];
        order[i] = i < last ? i : i == last ? last + 1 : last;
    }
    op[0]->output_tensor->n_tensor_dim = (size_t)parts.rank;
    parts.dim[last] = s.dim[last] / groups;
    parts.dim[last + 1] = groups;
    EW_TRY(ew_xir_op(x, n->name, "transpose", &parts, &op[1]));
    ew_xir_ints(x, op[1], "order", order, parts.rank);
    EW_TRY(ew_xir_op(x, n->name, "reshape", &s, &op[2]));
    put_shape(x, op[2], &s);
    for (int i = 1; i < 3; i++)
        ew_xir_arg(x, op[i], "input", (const char *const *)&op[i - 1]->op_name, 1);
    x->op[n->out[0]] = op[2]->op_name;
    return EW_OK;
}

static ew_err put_softmax(struct ew_xir_out *x, int node)
{
    const struct ew_node *n = &x->g->nodes[node];
    const struct ew_softmax_attr *a = n->attr;
    const int rank = x->g->values[n->in[0]].t.shape.rank;
    Ew__XirOp *op;
    EW_CHECK(!a->flatten || (a->axis < 0 ? a->axis + rank : a->axis) == rank - 1,
             EW_ERR_UNSUPPORTED, "XIR's softmax is over one axis");
    EW_TRY(put_plain(x, node, "softmax", &op));
    ew_xir_int(x, op, "axis", a->axis < 0 ? a->axis + rank : a->axis);
    return EW_OK;
}

static ew_err put_mean(struct ew_xir_out *x, int node)
{
    const struct ew_node *n = &x->g->nodes[node];
    const struct ew_shape *s = &x->g->values[n->in[0]].t.shape;
    const bool keep = ((const struct ew_reduce_attr *)n->attr)->keepdims;
    struct ew_ints axes = {.n = s->rank, .v = {0, 1, 2, 3, 4, 5, 6, 7}};
    Ew__XirOp *op;
    if (n->n_in > 1 && n->in[1] >= 0)
        EW_TRY(ew_tensor_ints(&x->g->values[n->in[1]].t, "axes", &axes));
    for (int i = 0; i < axes.n; i++)
        axes.v[i] += axes.v[i] < 0 ? s->rank : 0;
    EW_TRY(put_plain(x, node, "reduction_mean", &op));
    ew_xir_ints(x, op, "axis", axes.v, axes.n);
    ew_xir_bool(x, op, "keep_dims", keep);
    return EW_OK;
}

/* Adds a slice of a value, starting at `begin`. */
static ew_err put_cut(struct ew_xir_out *x, int node, int out, const int64_t *begin)
{
    const struct ew_node *n = &x->g->nodes[node];
    const struct ew_shape *s = &x->g->values[n->out[out]].t.shape;
    int64_t end[EW_MAX_RANK], step[EW_MAX_RANK];
    const char *from;
    Ew__XirOp *op;
    for (int i = 0; i < s->rank; i++) {
        end[i] = begin[i] + s->dim[i];
        step[i] = 1;
    }
    EW_TRY(ew_xir_value(x, n->in[0], NULL, &from));
    EW_TRY(ew_xir_op(x, n->name, "strided_slice", s, &op));
    ew_xir_arg(x, op, "input", &from, 1);
    ew_xir_ints(x, op, "begin", begin, s->rank);
    ew_xir_ints(x, op, "end", end, s->rank);
    ew_xir_ints(x, op, "strides", step, s->rank);
    x->op[n->out[out]] = op->op_name;
    return EW_OK;
}

static ew_err put_split(struct ew_xir_out *x, int node)
{
    const struct ew_node *n = &x->g->nodes[node];
    const int rank = x->g->values[n->in[0]].t.shape.rank;
    int64_t axis = ((const struct ew_split_attr *)n->attr)->axis, begin[EW_MAX_RANK] = {0};
    axis = axis < 0 ? axis + rank : axis;
    for (int i = 0; i < n->n_out; i++) {
        EW_CHECK(n->out[i] >= 0, EW_ERR_UNSUPPORTED, "part %d of it is not used", i);
        EW_TRY(put_cut(x, node, i, begin));
        begin[axis] += x->g->values[n->out[i]].t.shape.dim[axis];
    }
    return EW_OK;
}

/* ---- Table ---- */

static ew_err pass_on(struct ew_xir_out *x, int node)
{
    const struct ew_node *n = &x->g->nodes[node];
    EW_TRY(ew_xir_value(x, n->in[0], NULL, &x->op[n->out[0]]));
    x->fix[n->out[0]] = x->fix[n->in[0]];
    return EW_OK;
}

static const struct {
    const struct ew_op *op;
    ew_err (*put)(struct ew_xir_out *x, int node);
} kinds[] = {
    {&ew_op_conv, put_conv},
    {&ew_op_max_pool, put_max_pool},
    {&ew_op_global_max_pool, put_max_pool},
    {&ew_op_average_pool, put_average},
    {&ew_op_global_average_pool, put_average},
    {&ew_op_adaptive_avg_pool, put_average},
    {&ew_op_gemm, put_dense},
    {&ew_op_matmul, put_dense},
    {&ew_op_relu, put_activation},
    {&ew_op_clip, put_activation},
    {&ew_op_leaky_relu, put_activation},
    {&ew_op_hard_sigmoid, put_activation},
    {&ew_op_hard_swish, put_activation},
    {&ew_op_sigmoid, put_activation},
    {&ew_op_tanh, put_activation},
    {&ew_op_add, put_joined},
    {&ew_op_mul, put_joined},
    {&ew_op_concat, put_joined},
    {&ew_op_reshape, put_reshape},
    {&ew_op_flatten, put_reshape},
    {&ew_op_squeeze, put_reshape},
    {&ew_op_unsqueeze, put_reshape},
    {&ew_op_transpose, put_transpose},
    {&ew_op_channel_shuffle, put_shuffle},
    {&ew_op_split, put_split},
    {&ew_op_softmax, put_softmax},
    {&ew_op_reduce_mean, put_mean},
    {&ew_op_identity, pass_on},
    {&ew_op_dropout, pass_on},
};

ew_err ew_xir_put_node(struct ew_xir_out *x, int node)
{
    const struct ew_node *n = &x->g->nodes[node];
    for (size_t i = 0; i < EW_COUNT(kinds); i++)
        if (kinds[i].op == n->op)
            return ew_fail_in(kinds[i].put(x, node), "%s (%s)", n->name, n->op->name);
    return ew_fail(EW_ERR_UNSUPPORTED, "%s: XIR has no operator for %s", n->name, n->op->name);
}
