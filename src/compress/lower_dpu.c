/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering from QDQ form with power-of-two scales to the DPU's operators (op/dpu.h).
 *
 * Each quantiser, with the float nodes between it and the previous dequantisers, becomes a DPU node
 * where the hardware has one.  The rest stays in QDQ form, for the host: lower_quant.c. */
#include <math.h>
#include <string.h>

#include "compress/lower_quant.h"
#include "compress/pow2.h"
#include "graph/ops.h"
#include "op/dpu.h"
#include "op/math_attr.h"
#include "op/qlinear.h"

/* True for int8 with zero point 0 and a power-of-two scale; *position of the binary point. */
static bool at_position(const struct ew_graph *g, const struct ew_qview *v, int *position)
{
    return ew_qview_dtype(g, v) == EW_S8 && ew_qview_zero(g, v) == 0 &&
           ew_pow2_position(ew_qview_scale(g, v), position);
}

/* The same for a dequantised value. */
static bool view_of(const struct ew_graph *g, int value, struct ew_qview *v, int *position)
{
    return value >= 0 && ew_qview_of(g, value, v) && at_position(g, v, position);
}

static bool weights_of(const struct ew_graph *g, int value, int axis, struct ew_qview *v,
                       int *position)
{
    return ew_qview_weights(g, value, axis, v) && ew_tensor_count(&g->values[v->scale].t) == 1 &&
           at_position(g, v, position);
}

/* ---- Layers with weights ---- */

struct layer {
    struct ew_qview x, w, b;
    int x_at, w_at, b_at, y_at;
    bool has_bias;
    struct ew_dpu_conv_attr attr;
};

/* Views and shifts of a convolution or dense layer; false: not supported by the DPU. */
static bool find_layer(const struct ew_lowering *l, const struct ew_node *n, int axis,
                       struct layer *out)
{
    const struct ew_graph *g = l->g;
    if (!view_of(g, n->in[0], &out->x, &out->x_at) ||
        !weights_of(g, n->in[1], axis, &out->w, &out->w_at) || !at_position(g, &l->to, &out->y_at))
        return false;
    out->has_bias = n->n_in > 2 && n->in[2] >= 0;
    if (n->n_in > 3 || (out->has_bias && !weights_of(g, n->in[2], 0, &out->b, &out->b_at)))
        return false;
    const int sums = out->x_at + out->w_at, bias_shift = out->has_bias ? sums - out->b_at : 0;
    out->attr.shift = sums - out->y_at;
    out->attr.bias_shift = bias_shift;
    out->attr.clamp = l->clamp;
    return out->attr.shift >= 0 && out->attr.shift <= EW_POW2_SHIFT && bias_shift >= 0 &&
           bias_shift <= EW_POW2_BIAS_SHIFT;
}

/* The hardware has leaky relu with slope 26/256 and hard sigmoid x/6 + 1/2 only; ONNX's defaults
 * (0.01 and 0.2 x + 0.5) stay on the host. */
static bool is_hardware_act(const struct ew_epilogue_attr *act)
{
    if (act->act == EW_ACT_LEAKY)
        return act->lo > 0.09 && act->lo < 0.11;
    return act->act != EW_ACT_HARD_SIGMOID ||
           (fabs(6 * (double)act->lo - 1) < 1e-3 && fabs((double)act->hi - 0.5) < 1e-3);
}

/* The layer's node before its activation; leaky relu is part of a DPU layer. */
static int find_sums(const struct ew_lowering *l, bool *leaky)
{
    struct ew_epilogue_attr act = {0};
    int from = ew_qview_sole(l->g, l->value);
    *leaky = from >= 0 && ew_qview_is(l->g, from, &ew_op_leaky_relu) &&
             ew_act_of_node(l->g, from, &act) && is_hardware_act(&act);
    return *leaky ? ew_qview_sole(l->g, l->g->nodes[from].in[0]) : from;
}

static ew_err lower_conv(const struct ew_lowering *l, bool *done)
{
    struct ew_graph *g = l->g;
    struct layer y = {0};
    struct ew_conv_sizes s;
    bool leaky;
    const int from = find_sums(l, &leaky), first = g->n_nodes;
    if (from < 0 || !ew_qview_is(g, from, &ew_op_conv))
        return EW_OK;
    const struct ew_node *n = &g->nodes[from];
    const struct ew_conv_attr *a = n->attr;
    if (a->end.act != EW_ACT_NONE || !find_layer(l, n, 0, &y) ||
        ew_conv_geometry(&a->win, a->groups, &g->values[y.x.q].t.shape, &g->values[y.w.q].t.shape,
                         &s) != EW_OK ||
        ew_dpu_refuses_conv(&s))
        return EW_OK;
    y.attr.conv = (struct ew_int_conv_attr){.win = a->win, .groups = a->groups};
    y.attr.leaky = leaky;
    const int in[] = {y.x.q, y.w.q, y.b.q};
    int out;
    EW_TRY(ew_graph_add(g, &ew_op_dpu_conv, n->name, &y.attr, ew_inputs(in, y.has_bias ? 3 : 2),
                        &out));
    return ew_lower_place(l, first, out, done);
}

/* The matrix as filters [n, 1, 1, k]. */
static ew_err make_filters(struct ew_graph *g, int q, bool trans, int *out)
{
    const struct ew_value old = g->values[q];
    const int64_t n = old.t.shape.dim[!trans], k = old.t.shape.dim[trans];
    const struct ew_shape shape = {4, {n, 1, 1, k}};
    EW_TRY(ew_qview_const(g, old.name, EW_S8, &shape, out));
    const int8_t *from = old.t.data;
    int8_t *to = g->values[*out].t.data;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++)
            to[i * k + j] = trans ? from[i * k + j] : from[j * n + i];
    return EW_OK;
}

static bool is_dense(const struct ew_graph *g, int node, bool *trans)
{
    if (node < 0 || (!ew_qview_is(g, node, &ew_op_gemm) && !ew_qview_is(g, node, &ew_op_matmul)))
        return false;
    const struct ew_node *n = &g->nodes[node];
    const struct ew_gemm_attr *a = n->attr;
    const bool gemm = ew_qview_is(g, node, &ew_op_gemm);
    *trans = gemm && a->trans_b;
    return (!gemm ||
            (!a->trans_a && a->alpha >= 1 && a->alpha <= 1 && a->beta >= 1 && a->beta <= 1)) &&
           g->values[n->in[0]].t.shape.rank == 2 && g->values[n->in[1]].t.shape.rank == 2;
}

/* A dense layer, as a convolution over one pixel. */
static ew_err lower_dense(const struct ew_lowering *l, bool *done)
{
    struct ew_graph *g = l->g;
    struct layer y = {0};
    bool leaky, trans;
    const int from = find_sums(l, &leaky), first = g->n_nodes;
    if (!is_dense(g, from, &trans) || !find_layer(l, &g->nodes[from], trans ? 0 : 1, &y))
        return EW_OK;
    const struct ew_shape w = g->values[y.w.q].t.shape;
    const int64_t filters = w.dim[!trans], depth = w.dim[trans];
    const char *name = g->nodes[from].name;
    if (ew_dpu_refuses_dense(depth, filters))
        return EW_OK;
    y.attr.conv.groups = 1;
    y.attr.leaky = leaky;
    const int64_t pixel[] = {-1, 1, 1, depth}, row[] = {-1, filters};
    int in[] = {y.x.q, y.w.q, y.b.q}, out;
    EW_TRY(ew_lower_reshape(g, y.x.q, pixel, 4, &in[0]));
    EW_TRY(make_filters(g, y.w.q, trans, &in[1]));
    EW_TRY(
        ew_graph_add(g, &ew_op_dpu_conv, name, &y.attr, ew_inputs(in, y.has_bias ? 3 : 2), &out));
    EW_TRY(ew_lower_reshape(g, out, row, 2, &out));
    return ew_lower_place(l, first, out, done);
}

/* ---- Without weights ---- */

static ew_err lower_two(const struct ew_lowering *l, bool *done)
{
    struct ew_graph *g = l->g;
    const int from = ew_qview_sole(g, l->value), first = g->n_nodes;
    const bool add = ew_qview_is(g, from, &ew_op_add);
    struct ew_dpu_eltwise_attr attr = {.clamp = l->clamp};
    struct ew_qview v[2];
    int at[3], out;
    if ((!add && !ew_qview_is(g, from, &ew_op_mul)) || !at_position(g, &l->to, &at[2]))
        return EW_OK;
    for (int i = 0; i < 2; i++)
        if (!view_of(g, g->nodes[from].in[i], &v[i], &at[i]))
            return EW_OK;
    /* the operand with fewer elements, one per channel, comes second */
    const int b = ew_tensor_count(&g->values[v[0].q].t) >= ew_tensor_count(&g->values[v[1].q].t);
    const int in[] = {v[!b].q, v[b].q};
    attr.a = at[!b];
    attr.b = at[b];
    attr.y = at[2];
    if (ew_graph_add(g, add ? &ew_op_dpu_add : &ew_op_dpu_mul, g->nodes[from].name, &attr,
                     ew_inputs(in, 2), &out) != EW_OK)
        return EW_OK; /* other broadcasts stay on the host */
    return ew_lower_place(l, first, out, done);
}

/* The window of an average pool that the DPU supports: fixed size, padding counts. */
static bool average_window(const struct ew_graph *g, int node, struct ew_pool_attr *out)
{
    bool global;
    if (!ew_lower_window(g, node, out, &global))
        return false;
    const struct ew_shape *x = &g->values[g->nodes[node].in[0]].t.shape;
    if (x->rank != 4)
        return false;
    if (global)
        out->win.kernel = (struct ew_ints){2, {x->dim[1], x->dim[2]}};
    bool padded = out->win.auto_pad != EW_AUTO_PAD_NOTSET || out->ceil_mode;
    for (int i = 0; i < out->win.pad.n; i++)
        padded = padded || out->win.pad.v[i];
    return !padded || out->count_include_pad;
}

static ew_err lower_average(const struct ew_lowering *l, bool *done)
{
    struct ew_graph *g = l->g;
    const int from = ew_qview_sole(g, l->value), first = g->n_nodes;
    struct ew_dpu_pool_attr attr = {0};
    struct ew_qview x;
    int at, to, out;
    if (from < 0 || !ew_quant_clamps_nothing(&l->clamp) || !average_window(g, from, &attr.pool) ||
        !view_of(g, g->nodes[from].in[0], &x, &at) || !at_position(g, &l->to, &to))
        return EW_OK;
    attr.shift = at - to;
    EW_TRY(
        ew_graph_add(g, &ew_op_dpu_average_pool, g->nodes[from].name, &attr, EW_INPUTS(x.q), &out));
    EW_TRY(ew_lower_drop_axes(g, from, &out));
    return ew_lower_place(l, first, out, done);
}

/* Fills the table of a unary function of int8 by the hardware's rules. */
static bool fill_table(const struct ew_epilogue_attr *act, int from, int to,
                       const struct ew_quant_clamp *clamp, int8_t *table)
{
    for (int i = 0; i < 256; i++) {
        const int x = (int8_t)i;
        const bool less = act->act == EW_ACT_LEAKY && x < 0;
        if (act->act == EW_ACT_HARD_SIGMOID)
            table[i] = ew_dpu_hard_sigmoid(x, from, to);
        else if (act->act == EW_ACT_HARD_SWISH)
            table[i] = ew_dpu_hard_swish(x, from, to);
        else if (act->act == EW_ACT_NONE || act->act == EW_ACT_LEAKY)
            table[i] = ew_dpu_store(less ? x * EW_DPU_LEAKY : x,
                                    from - to + (less ? EW_DPU_LEAKY_SHIFT : 0), clamp);
        else
            return false;
    }
    return true;
}

static ew_err lower_function(const struct ew_lowering *l, bool *done)
{
    struct ew_graph *g = l->g;
    const struct ew_shape shape = {1, {256}};
    const int first = g->n_nodes;
    struct ew_epilogue_attr act = {.act = EW_ACT_NONE};
    struct ew_qview x;
    int8_t table[256];
    int value = l->value, at, to, in[EW_LOOKUP_INPUTS], out;
    const int from = ew_qview_sole(g, value);
    if (!ew_qview_of(g, value, &x) && from >= 0 && ew_act_of_node(g, from, &act))
        value = g->nodes[from].in[0];
    if (!is_hardware_act(&act) || !view_of(g, value, &x, &at) || !at_position(g, &l->to, &to) ||
        !fill_table(&act, at, to, &l->clamp, table))
        return EW_OK;
    in[EW_LOOKUP_X] = x.q;
    EW_TRY(ew_qview_const(g, "table", EW_S8, &shape, &in[EW_LOOKUP_TABLE]));
    memcpy(g->values[in[EW_LOOKUP_TABLE]].t.data, table, sizeof(table));
    EW_TRY(ew_graph_add(g, &ew_op_lookup, NULL, NULL, ew_inputs(in, EW_LOOKUP_INPUTS), &out));
    return ew_lower_place(l, first, out, done);
}

/* The graph input: float32 from the host, rounded half away from zero. */
static ew_err lower_input(const struct ew_lowering *l, bool *done)
{
    struct ew_graph *g = l->g;
    const int value = g->nodes[l->node].in[0], first = g->n_nodes;
    struct ew_dpu_input_attr attr;
    int at, out;
    if (g->values[value].kind != EW_VALUE_INPUT || !at_position(g, &l->to, &at))
        return EW_OK;
    attr.position = at;
    EW_TRY(ew_graph_add(g, &ew_op_dpu_input, NULL, &attr, EW_INPUTS(value), &out));
    return ew_lower_place(l, first, out, done);
}

static ew_err lower(struct ew_graph *g, int node)
{
    static ew_lower_fn *const kinds[] = {lower_input, lower_function, lower_conv,     lower_dense,
                                         lower_two,   lower_average,  ew_lower_concat};
    return ew_lower_first(g, node, kinds, EW_COUNT(kinds));
}

ew_err ew_pass_lower_dpu(struct ew_graph *g)
{
    EW_TRY(ew_pass_drop_identity(g));
    EW_TRY(ew_lower_prepare(g));
    return ew_lower_sweep(g, lower);
}
