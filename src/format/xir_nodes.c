/* SPDX-License-Identifier: Apache-2.0 */
/* Import of XIR operators. */
#include <math.h>
#include <string.h>

#include "format/xir.h"
#include "format/xir_in.h"
#include "graph/layout.h"
#include "graph/ops.h"
#include "op/conv.h"
#include "op/dpu.h"
#include "op/math_attr.h"
#include "op/pooling.h"
#include "op/quant.h"
#include "op/shape_attr.h"

#define POSITIONS 32 /* 2^-32 to 2^32, whose products with int8 are exact in float32 */

static ew_err add(struct ew_xir_in *in, const char *op, const void *attr, const int *inputs, int n,
                  int *value)
{
    EW_TRY(ew_graph_add(in->g, ew_op_find(op), in->op->op_name, attr, ew_inputs(inputs, n), value));
    return EW_OK;
}

static ew_err plain(struct ew_xir_in *in, const char *op, const void *attr, int *value)
{
    int x;
    EW_TRY(ew_xir_one(in, "input", &x));
    return add(in, op, attr, &x, 1, value);
}

/* ---- fix ---- */

/* Adds scale and zero point of int8 at a position. */
static ew_err add_parameters(struct ew_xir_in *in, int64_t position, int *scale, int *zero)
{
    int8_t none = 0;
    const struct ew_tensor t = {.dtype = EW_S8, .data = &none};
    EW_TRY(ew_graph_const_float(in->g, NULL, ldexpf(1, -(int)position), scale));
    return ew_graph_const(in->g, NULL, EW_VALUE_CONST, &t, true, zero);
}

/* Adds a constant as dequantised int8, rounding half away from zero. */
static ew_err fix_const(struct ew_xir_in *in, int x, int64_t position, int *value)
{
    const struct ew_tensor from = in->g->values[x].t;
    const int64_t n = ew_tensor_count(&from);
    struct ew_tensor t = {.dtype = EW_S8, .shape = from.shape};
    int ports[3];
    int8_t *q = ew_arena_alloc(&in->g->arena, (size_t)n + 1);
    EW_CHECK(q, EW_ERR_MEMORY, "no memory for %lld elements", (long long)n);
    for (int64_t i = 0; i < n; i++)
        q[i] = (int8_t)fmax(fmin(round(ldexp(ew_tensor_get(&from, i), (int)position)), 127), -128);
    t.data = q;
    EW_TRY(ew_graph_const(in->g, in->op->op_name, EW_VALUE_CONST, &t, false, &ports[0]));
    EW_TRY(add_parameters(in, position, &ports[1], &ports[2]));
    return add(in, "dequantize_linear", NULL, ports, 3, value);
}

static ew_err get_fix(struct ew_xir_in *in, int *value)
{
    const int64_t bits = ew_xir_get_int(in, "bit_width", 0);
    const int64_t position = ew_xir_get_int(in, "fix_point", POSITIONS + 1);
    const struct ew_quant_attr attr = {.axis = 1, .dtype = EW_S8};
    int ports[3];
    EW_CHECK(bits == 8 && ew_xir_get_int(in, "if_signed", 0), EW_ERR_UNSUPPORTED,
             "it has %lld bits%s: only signed 8 are read", (long long)bits,
             ew_xir_get_int(in, "if_signed", 0) ? "" : " without sign");
    EW_CHECK(position >= -POSITIONS && position <= POSITIONS, EW_ERR_FORMAT,
             "attribute fix_point is missing or beyond %d", POSITIONS);
    EW_TRY(ew_xir_one(in, "input", &ports[0]));
    if (in->g->values[ports[0]].kind == EW_VALUE_CONST)
        return fix_const(in, ports[0], position, value);
    EW_TRY(add_parameters(in, position, &ports[1], &ports[2]));
    EW_TRY(add(in, "quantize_linear", &attr, ports, 3, &ports[0]));
    return add(in, "dequantize_linear", NULL, ports, 3, value);
}

/* ---- Windows ---- */

/* Swaps width and height, which XIR has in the other order. */
static struct ew_ints turned(const struct ew_ints *v)
{
    return (struct ew_ints){2, {v->v[1], v->v[0]}};
}

static ew_err get_window(const struct ew_xir_in *in, struct ew_window_attr *win, bool *ceil)
{
    const char *mode = ew_xir_get_text(in, "pad_mode", "FLOOR");
    struct ew_ints v;
    *win = (struct ew_window_attr){0};
    EW_TRY(ew_xir_get_ints(in, "kernel", 2, 1, &v));
    win->kernel = turned(&v);
    EW_TRY(ew_xir_get_ints(in, "stride", 2, 1, &v));
    win->stride = turned(&v);
    if (ew_xir_attr(in, "dilation")) {
        EW_TRY(ew_xir_get_ints(in, "dilation", 2, 1, &v));
        win->dilation = turned(&v);
    }
    if (ew_xir_attr(in, "pad")) {
        EW_TRY(ew_xir_get_ints(in, "pad", 4, 0, &v));
        win->pad = (struct ew_ints){4, {v.v[2], v.v[0], v.v[3], v.v[1]}};
    }
    *ceil = strcmp(mode, "CEIL") == 0;
    if (strcmp(mode, "SAME") == 0)
        win->auto_pad = EW_AUTO_PAD_SAME_UPPER;
    else if (strcmp(mode, "VALID") == 0)
        win->auto_pad = EW_AUTO_PAD_VALID;
    else
        EW_CHECK(*ceil || strcmp(mode, "FLOOR") == 0, EW_ERR_FORMAT, "pad_mode is %.20s", mode);
    if (win->auto_pad)
        win->pad.n = 0;
    return EW_OK;
}

/* The constant behind a filter's dequantiser; -1: not constant. */
static int filter_source(const struct ew_graph *g, int value)
{
    const int from = ew_graph_producer(g, value, &ew_op_dequantize_linear);
    if (from >= 0)
        value = g->nodes[from].in[0];
    return g->values[value].kind == EW_VALUE_CONST ? value : -1;
}

/* Converts filters of a depthwise convolution from [1, h, w, C] to [C, h, w, 1]. */
static ew_err turn_filters(struct ew_xir_in *in, int *value)
{
    static const int perm[] = {3, 1, 2, 0};
    struct ew_graph *g = in->g;
    const int source = filter_source(g, *value), from = g->values[*value].producer;
    EW_CHECK(source >= 0, EW_ERR_UNSUPPORTED, "its filters are computed");
    const struct ew_value old = g->values[source];
    EW_CHECK(old.t.shape.rank == 4 && old.t.shape.dim[0] == 1, EW_ERR_UNSUPPORTED,
             "its filters are not [1, height, width, channels]");
    struct ew_tensor t = {.dtype = old.t.dtype, .shape = old.t.shape};
    for (int i = 0; i < 4; i++)
        t.shape.dim[i] = old.t.shape.dim[perm[i]];
    t.data = ew_arena_alloc(&g->arena, ew_tensor_bytes(&t) + 1);
    EW_CHECK(t.data, EW_ERR_MEMORY, "no memory for its filters");
    ew_tensor_permute(&old.t, perm, &t);
    int made;
    EW_TRY(ew_graph_const(g, old.name, EW_VALUE_CONST, &t, false, &made));
    if (from < 0) {
        *value = made;
        return EW_OK;
    }
    const int ports[] = {made, g->nodes[from].in[1], g->nodes[from].in[2]};
    return add(in, "dequantize_linear", NULL, ports, 3, value);
}

static ew_err get_conv(struct ew_xir_in *in, int *value)
{
    const bool depthwise = strcmp(in->op->op_type, "depthwise-conv2d") == 0;
    struct ew_conv_attr attr = {.groups = ew_xir_get_int(in, "group", 1)};
    int ports[3], n;
    bool ceil;
    EW_TRY(get_window(in, &attr.win, &ceil));
    EW_CHECK(!ceil, EW_ERR_UNSUPPORTED, "a convolution with pad_mode CEIL");
    EW_TRY(ew_xir_one(in, "input", &ports[0]));
    EW_TRY(ew_xir_one(in, "weights", &ports[1]));
    EW_TRY(ew_xir_args(in, "bias", 1, &ports[2], &n));
    if (depthwise) {
        EW_TRY(turn_filters(in, &ports[1]));
        attr.groups = in->g->values[ports[1]].t.shape.dim[0];
    }
    return add(in, "conv", &attr, ports, 2 + n, value);
}

static ew_err get_max_pool(struct ew_xir_in *in, int *value)
{
    struct ew_pool_attr attr = {0};
    if (ew_xir_get_int(in, "global", 0))
        return plain(in, "global_max_pool", NULL, value);
    EW_TRY(get_window(in, &attr.win, &attr.ceil_mode));
    return plain(in, "max_pool", &attr, value);
}

static ew_err get_average(struct ew_xir_in *in, int *value)
{
    struct ew_pool_attr attr = {.count_include_pad = ew_xir_get_int(in, "count_include_pad", 1)};
    int x;
    EW_TRY(ew_xir_one(in, "input", &x));
    EW_TRY(get_window(in, &attr.win, &attr.ceil_mode));
    const struct ew_shape *s = &in->g->values[x].t.shape;
    bool padded = attr.ceil_mode || attr.win.auto_pad, whole = s->rank == 4;
    for (int i = 0; i < attr.win.pad.n; i++)
        padded |= attr.win.pad.v[i] != 0;
    for (int i = 0; i < 2; i++)
        whole &= s->dim[1 + i] == attr.win.kernel.v[i];
    if (whole && !padded)
        return add(in, "global_average_pool", NULL, &x, 1, value);
    return add(in, "average_pool", &attr, &x, 1, value);
}

/* ---- Sums, products, dense layers ---- */

/* The factor of the DPU's approximate mean or hard sigmoid relative to the exact one; 0: x is
 * neither. */
static double dpu_factor(const struct ew_graph *g, int x)
{
    const int from = g->values[x].producer;
    const struct ew_node *n = from >= 0 ? &g->nodes[from] : NULL;
    if (n && n->op == &ew_op_hard_sigmoid)
        return EW_XIR_GATE_FACTOR;
    const bool global = n && n->op == &ew_op_global_average_pool;
    if (!n || (!global && n->op != &ew_op_average_pool))
        return 0;
    const struct ew_pool_attr *a = n->attr;
    const int64_t *size = global ? &g->values[n->in[0]].t.shape.dim[1] : a->win.kernel.v;
    const struct ew_dpu_mean m = ew_dpu_mean(size[0], size[1]);
    return ldexp((double)(size[0] * size[1]) * m.factor, -m.shift);
}

/* True if the multiplication is by that factor, which files have explicitly and the DPU operators
 * include. */
static bool is_factor(const struct ew_graph *g, int x, int by)
{
    const struct ew_value *v = &g->values[by];
    const double factor = dpu_factor(g, x);
    return factor > 0 && v->kind == EW_VALUE_CONST && ew_tensor_count(&v->t) == 1 &&
           fabs(ew_tensor_get(&v->t, 0) - factor) < 1e-6;
}

static ew_err get_two(struct ew_xir_in *in, int *value)
{
    int ports[2], n;
    EW_TRY(ew_xir_args(in, "input", 2, ports, &n));
    EW_CHECK(n == 2, EW_ERR_FORMAT, "it has %d inputs", n);
    if (strcmp(in->op->op_type, "mul") == 0 && is_factor(in->g, ports[0], ports[1])) {
        *value = ports[0];
        return EW_OK;
    }
    return add(in, in->op->op_type, NULL, ports, 2, value);
}

static ew_err get_dense(struct ew_xir_in *in, int *value)
{
    const struct ew_gemm_attr attr = {.alpha = 1,
                                      .beta = 1,
                                      .trans_a = ew_xir_get_int(in, "transpose_a", 0),
                                      .trans_b = ew_xir_get_int(in, "transpose_b", 0)};
    int ports[3], n, bias;
    EW_TRY(ew_xir_args(in, "input", 2, ports, &n));
    EW_TRY(ew_xir_args(in, "bias", 1, &ports[2], &bias));
    EW_CHECK(n == 2, EW_ERR_FORMAT, "it has %d inputs", n);
    const bool matrices =
        in->g->values[ports[0]].t.shape.rank == 2 && in->g->values[ports[1]].t.shape.rank == 2;
    EW_CHECK(matrices || (!attr.trans_a && !attr.trans_b && !bias), EW_ERR_UNSUPPORTED,
             "products of more than two dimensions are read without transposes and bias only");
    return matrices ? add(in, "gemm", &attr, ports, 2 + bias, value)
                    : add(in, "matmul", NULL, ports, 2, value);
}

static ew_err get_concat(struct ew_xir_in *in, int *value)
{
    const struct ew_concat_attr attr = {.axis = ew_xir_get_int(in, "axis", 0)};
    size_t most = 0;
    for (size_t i = 0; i < in->op->n_args; i++)
        most += in->op->args[i]->n_arg_ops;
    int *ports = ew_arena_array(&in->file.arena, most + 1, sizeof(*ports)), n;
    EW_CHECK(ports, EW_ERR_MEMORY, "no memory for %zu inputs", most);
    EW_TRY(ew_xir_args(in, "input", (int)most, ports, &n));
    return add(in, "concat", &attr, ports, n, value);
}

/* ---- Unary functions and data movement ---- */

static ew_err get_relu(struct ew_xir_in *in, int *value)
{
    return plain(in, "relu", NULL, value);
}

static ew_err get_relu6(struct ew_xir_in *in, int *value)
{
    int ports[3];
    EW_TRY(ew_xir_one(in, "input", &ports[0]));
    EW_TRY(ew_graph_const_float(in->g, NULL, 0, &ports[1]));
    EW_TRY(ew_graph_const_float(in->g, NULL, 6, &ports[2]));
    return add(in, "clip", NULL, ports, 3, value);
}

static ew_err get_leaky(struct ew_xir_in *in, int *value)
{
    const Ew__XirAttr *a = ew_xir_attr(in, "alpha");
    EW_CHECK(a && (a->has_float_value || a->has_double_value), EW_ERR_FORMAT,
             "attribute alpha is missing");
    const struct ew_scale_attr attr = {.alpha = a->has_float_value ? (double)a->float_value
                                                                   : a->double_value};
    return plain(in, "leaky_relu", &attr, value);
}

static ew_err get_hard_sigmoid(struct ew_xir_in *in, int *value)
{
    return plain(in, "hard_sigmoid", &(struct ew_scale_attr){1.0 / 6, 0.5}, value);
}

static ew_err get_hard_swish(struct ew_xir_in *in, int *value)
{
    return plain(in, "hard_swish", NULL, value);
}

static ew_err get_same(struct ew_xir_in *in, int *value)
{
    return plain(in, in->op->op_type, NULL, value);
}

/* Reshapes; a first dimension equal to the batch stays dynamic. */
static ew_err reshape_to(struct ew_xir_in *in, int x, struct ew_ints *shape, int *value)
{
    const struct ew_shape *s = &in->g->values[x].t.shape;
    int ports[2] = {x};
    if (shape->n > 0 && s->rank > 0 && shape->v[0] == s->dim[0])
        shape->v[0] = 0;
    EW_TRY(ew_graph_const_ints(in->g, NULL, shape->v, shape->n, &ports[1]));
    return add(in, "reshape", NULL, ports, 2, value);
}

static ew_err get_reshape(struct ew_xir_in *in, int *value)
{
    struct ew_ints shape;
    int x;
    EW_TRY(ew_xir_one(in, "input", &x));
    EW_TRY(ew_xir_get_ints(in, "shape", -1, -1, &shape));
    return reshape_to(in, x, &shape, value);
}

static ew_err get_flatten(struct ew_xir_in *in, int *value)
{
    int64_t first = ew_xir_get_int(in, "start_axis", 0), last = ew_xir_get_int(in, "end_axis", -1);
    struct ew_ints shape = {0};
    int x;
    EW_TRY(ew_xir_one(in, "input", &x));
    const struct ew_shape *s = &in->g->values[x].t.shape;
    first += first < 0 ? s->rank : 0;
    last += last < 0 ? s->rank : 0;
    EW_CHECK(first >= 0 && first <= last && last < s->rank, EW_ERR_FORMAT,
             "it flattens axes %lld to %lld of %d", (long long)first, (long long)last, s->rank);
    for (int i = 0; i < s->rank; i++) {
        if (i <= first || i > last)
            shape.v[shape.n++] = s->dim[i];
        else
            shape.v[shape.n - 1] *= s->dim[i];
    }
    return reshape_to(in, x, &shape, value);
}

static ew_err get_transpose(struct ew_xir_in *in, int *value)
{
    struct ew_transpose_attr attr;
    EW_TRY(ew_xir_get_ints(in, "order", -1, 0, &attr.perm));
    return plain(in, "transpose", &attr, value);
}

static ew_err get_softmax(struct ew_xir_in *in, int *value)
{
    return plain(in, "softmax", &(struct ew_softmax_attr){.axis = ew_xir_get_int(in, "axis", -1)},
                 value);
}

static ew_err get_mean(struct ew_xir_in *in, int *value)
{
    const struct ew_reduce_attr attr = {.keepdims = ew_xir_get_int(in, "keep_dims", 0)};
    struct ew_ints axes;
    int ports[2];
    EW_TRY(ew_xir_one(in, "input", &ports[0]));
    EW_TRY(ew_xir_get_ints(in, "axis", -1, -EW_MAX_RANK, &axes));
    EW_TRY(ew_graph_const_ints(in->g, NULL, axes.v, axes.n, &ports[1]));
    return add(in, "reduce_mean", &attr, ports, 2, value);
}

/* Slices only the axes that are cut, so that others (the batch) stay dynamic. */
static ew_err get_slice(struct ew_xir_in *in, int *value)
{
    struct ew_ints begin, end, step = {0}, cut[4] = {0};
    int ports[5], n = 0;
    EW_TRY(ew_xir_one(in, "input", &ports[0]));
    const struct ew_shape *s = &in->g->values[ports[0]].t.shape;
    EW_TRY(ew_xir_get_ints(in, "begin", s->rank, INT32_MIN, &begin));
    EW_TRY(ew_xir_get_ints(in, "end", s->rank, INT32_MIN, &end));
    if (ew_xir_attr(in, "strides"))
        EW_TRY(ew_xir_get_ints(in, "strides", s->rank, 1, &step));
    for (int i = 0; i < s->rank; i++) {
        const int64_t by = step.n ? step.v[i] : 1;
        if (begin.v[i] == 0 && end.v[i] == s->dim[i] && by == 1)
            continue;
        const int64_t row[] = {begin.v[i], end.v[i], i, by};
        for (int k = 0; k < 4; k++)
            cut[k].v[n] = row[k];
        n++;
    }
    for (int k = 0; k < 4; k++)
        EW_TRY(ew_graph_const_ints(in->g, NULL, cut[k].v, n, &ports[1 + k]));
    return add(in, "slice", NULL, ports, 5, value);
}

static const struct {
    const char *type;
    ew_err (*get)(struct ew_xir_in *in, int *value);
} kinds[] = {
    {"fix", get_fix},
    {"conv2d", get_conv},
    {"depthwise-conv2d", get_conv},
    {"maxpool2d", get_max_pool},
    {"avgpool2d", get_average},
    {"matmul", get_dense},
    {"add", get_two},
    {"mul", get_two},
    {"concat", get_concat},
    {"relu", get_relu},
    {"relu6", get_relu6},
    {"leaky-relu", get_leaky},
    {"hard-sigmoid", get_hard_sigmoid},
    {"hard-swish", get_hard_swish},
    {"sigmoid", get_same},
    {"tanh", get_same},
    {"reshape", get_reshape},
    {"flatten", get_flatten},
    {"transpose", get_transpose},
    {"softmax", get_softmax},
    {"reduction_mean", get_mean},
    {"strided_slice", get_slice},
};

ew_err ew_xir_get_node(struct ew_xir_in *in, int *value)
{
    for (size_t i = 0; i < EW_COUNT(kinds); i++)
        if (strcmp(kinds[i].type, ew_onnx_text(in->op->op_type)) == 0)
            return kinds[i].get(in, value);
    return ew_fail(EW_ERR_UNSUPPORTED, "this type of operator is not read");
}
