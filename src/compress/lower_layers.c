/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering of layers with weights: convolutions, dense layers, batch norm. */
#include <math.h>

#include "compress/lower_quant.h"
#include "graph/ops.h"
#include "op/math_attr.h"
#include "op/norm.h"
#include "op/qlinear.h"

/* ---- Biases ---- */

/* Scale of the int32 sums of output channel i. */
static double sum_scale(const struct ew_graph *g, const struct ew_qview *x,
                        const struct ew_qview *w, int64_t i)
{
    return ew_qview_scale(g, x) * ew_quant_scale(&g->values[w->scale].t, i);
}

/* Element i of a bias: a float constant, or dequantised integers. */
static double bias_at(const struct ew_graph *g, int value, int64_t i)
{
    struct ew_qview b;
    if (!ew_qview_weights(g, value, 0, &b))
        return ew_tensor_get(&g->values[value].t, i);
    const int64_t q = ew_tensor_get_int(&g->values[b.q].t, i);
    return (double)(q - ew_quant_zero(&g->values[b.zero].t, i)) *
           ew_quant_scale(&g->values[b.scale].t, i);
}

struct bias {
    int value; /* -1: none */
    bool fits; /* false: not constant, or too large for int32 */
};

/* True if the shape is [..., 1, columns]: not [columns, 1], which has as many elements. */
static bool is_row(const struct ew_shape *s, int64_t columns)
{
    return ew_shape_count(s) == columns && (s->rank == 0 || s->dim[s->rank - 1] == columns);
}

/* Makes the int32 bias at the scale of the sums. */
static ew_err make_bias(struct ew_graph *g, int value, const struct ew_qview *x,
                        const struct ew_qview *w, int64_t count, struct bias *out)
{
    struct ew_qview b;
    *out = (struct bias){.value = -1, .fits = true};
    if (value < 0)
        return EW_OK;
    out->fits = (ew_pass_is_constant(g, value) || ew_qview_weights(g, value, 0, &b)) &&
                is_row(&g->values[value].t.shape, count);
    if (!out->fits)
        return EW_OK;
    const struct ew_shape shape = {1, {count}};
    EW_TRY(ew_qview_const(g, g->values[value].name, EW_S32, &shape, &out->value));
    int32_t *q = g->values[out->value].t.data;
    for (int64_t i = 0; i < count && out->fits; i++) {
        const double v = rint(bias_at(g, value, i) / sum_scale(g, x, w, i));
        out->fits = fabs(v) < 0x1p30; /* false for NaN */
        q[i] = out->fits ? (int32_t)v : 0;
    }
    return EW_OK;
}

/* ---- Convolutions ---- */

static bool find_conv(const struct ew_graph *g, int node, struct ew_qview *x, struct ew_qview *w)
{
    if (!ew_qview_is(g, node, &ew_op_conv))
        return false;
    const struct ew_node *n = &g->nodes[node];
    const struct ew_conv_attr *a = n->attr;
    return a->end.act == EW_ACT_NONE && n->n_in <= 3 && ew_qview_of(g, n->in[0], x) &&
           ew_qview_weights(g, n->in[1], 0, w) && (EW_TYPES_QUANT8 >> g->values[w->q].t.dtype & 1);
}

/* Adds the integer node of convolution `node`, with output quantised as `to` (NULL: float32). */
static ew_err add_conv(struct ew_graph *g, int node, const struct ew_qview *to,
                       const struct ew_quant_clamp *clamp, int *out)
{
    const struct ew_node n = g->nodes[node];
    const struct ew_conv_attr *a = n.attr;
    struct ew_qview x, w;
    struct bias bias;
    *out = -1;
    if (!find_conv(g, node, &x, &w))
        return EW_OK;
    EW_TRY(make_bias(g, n.n_in > 2 ? n.in[2] : -1, &x, &w, g->values[w.q].t.shape.dim[0], &bias));
    if (!bias.fits)
        return EW_OK;
    const int in[] = {
        x.q,       x.scale, x.zero, w.q, w.scale, w.zero, to ? to->scale : -1, to ? to->zero : -1,
        bias.value};
    const struct ew_qconv_attr attr = {.conv = {.win = a->win, .groups = a->groups},
                                       .clamp = *clamp};
    return ew_graph_add(g, &ew_op_qlinear_conv, n.name, &attr, ew_inputs(in, (int)EW_COUNT(in)),
                        out);
}

ew_err ew_lower_conv(const struct ew_lowering *l, bool *done)
{
    const int from = ew_qview_sole(l->g, l->value), first = l->g->n_nodes;
    int out = -1;
    if (from >= 0 && ew_qview_is(l->g, from, &ew_op_conv))
        EW_TRY(add_conv(l->g, from, &l->to, &l->clamp, &out));
    return out < 0 ? EW_OK : ew_lower_place(l, first, out, done);
}

static const struct ew_quant_clamp no_clamp = {-128, 255};

ew_err ew_lower_conv_float(struct ew_graph *g, int node, bool *done)
{
    const int first = g->n_nodes;
    int out = -1;
    if (ew_qview_is(g, node, &ew_op_conv))
        EW_TRY(add_conv(g, node, NULL, &no_clamp, &out));
    *done = out >= 0;
    return out < 0 ? EW_OK : ew_graph_splice(g, node, first, &out);
}

/* ---- Dense layers ---- */

/* Matches gemm or matmul; *trans: B is stored as [n, k]. */
static bool find_gemm(const struct ew_graph *g, int node, bool *trans, int64_t *columns)
{
    const struct ew_node *n = &g->nodes[node];
    const struct ew_gemm_attr *a = n->attr;
    const bool gemm = ew_qview_is(g, node, &ew_op_gemm);
    if ((!gemm && !ew_qview_is(g, node, &ew_op_matmul)) ||
        (gemm && (a->trans_a || a->alpha < 1 || a->alpha > 1 || a->beta < 1 || a->beta > 1)))
        return false;
    const struct ew_shape *x = &g->values[n->in[0]].t.shape, *w = &g->values[n->in[1]].t.shape;
    *trans = gemm && a->trans_b;
    *columns = w->dim[!*trans];
    return x->rank == 2 && w->rank == 2;
}

static ew_err add_gemm(struct ew_graph *g, int node, const struct ew_qview *to,
                       const struct ew_quant_clamp *clamp, int *out)
{
    const struct ew_node n = g->nodes[node];
    struct ew_qview x, w;
    struct ew_qgemm_attr attr = {.clamp = *clamp};
    int64_t columns;
    struct bias bias;
    *out = -1;
    if (!find_gemm(g, node, &attr.trans_b, &columns) || !ew_qview_of(g, n.in[0], &x) ||
        !ew_qview_weights(g, n.in[1], attr.trans_b ? 0 : 1, &w) ||
        !(EW_TYPES_QUANT8 >> g->values[w.q].t.dtype & 1))
        return EW_OK;
    EW_TRY(make_bias(g, n.n_in > 2 ? n.in[2] : -1, &x, &w, columns, &bias));
    if (!bias.fits)
        return EW_OK;
    const int in[] = {x.q,
                      x.scale,
                      x.zero,
                      w.q,
                      w.scale,
                      w.zero,
                      bias.value,
                      to ? to->scale : -1,
                      to ? to->zero : -1};
    return ew_graph_add(g, &ew_op_qlinear_gemm, n.name, &attr, ew_inputs(in, (int)EW_COUNT(in)),
                        out);
}

ew_err ew_lower_gemm(const struct ew_lowering *l, bool *done)
{
    const int from = ew_qview_sole(l->g, l->value), first = l->g->n_nodes;
    int out = -1;
    if (from >= 0)
        EW_TRY(add_gemm(l->g, from, &l->to, &l->clamp, &out));
    return out < 0 ? EW_OK : ew_lower_place(l, first, out, done);
}

ew_err ew_lower_gemm_float(struct ew_graph *g, int node, bool *done)
{
    const int first = g->n_nodes;
    int out;
    EW_TRY(add_gemm(g, node, NULL, &no_clamp, &out));
    *done = out >= 0;
    return out < 0 ? EW_OK : ew_graph_splice(g, node, first, &out);
}

/* ---- Batch norm, as a depthwise 1x1 convolution whose filters are 127 or -127 ---- */

enum { SCALE = 1, SHIFT, MEAN, VAR };

static bool find_norm(const struct ew_graph *g, int node, struct ew_qview *x)
{
    if (!ew_qview_is(g, node, &ew_op_batch_norm))
        return false;
    const struct ew_node *n = &g->nodes[node];
    const struct ew_batch_norm_attr *a = n->attr;
    bool ok = !a->training_mode && a->end.act == EW_ACT_NONE && n->n_out == 1 &&
              g->values[n->in[0]].t.shape.rank > 2;
    for (int i = SCALE; i <= VAR; i++)
        ok &= ew_pass_is_floats(g, n->in[i]);
    return ok && ew_qview_of(g, n->in[0], x);
}

/* Fills filters, scales and bias by channel; false if a bias overflows. */
static bool fill_norm(const struct ew_graph *g, const struct ew_node *n, double x_scale,
                      const int made[3])
{
    const struct ew_batch_norm_attr *a = n->attr;
    int8_t *w = g->values[made[0]].t.data;
    float *w_scale = g->values[made[1]].t.data;
    int32_t *bias = g->values[made[2]].t.data;
    for (int64_t i = 0; i < ew_tensor_count(&g->values[made[0]].t); i++) {
        const double var = ew_tensor_get(&g->values[n->in[VAR]].t, i);
        const double f = ew_tensor_get(&g->values[n->in[SCALE]].t, i) / sqrt(var + a->eps);
        const double shift = ew_tensor_get(&g->values[n->in[SHIFT]].t, i) -
                             ew_tensor_get(&g->values[n->in[MEAN]].t, i) * f;
        w[i] = f < 0 ? -127 : 127;
        w_scale[i] = (float)(fabs(f) / 127);
        const double b = rint(shift / (x_scale * (double)w_scale[i]));
        if (!(fabs(b) < 0x1p30)) /* a factor of 0 among others */
            return false;
        bias[i] = (int32_t)b;
    }
    return true;
}

ew_err ew_lower_norm(const struct ew_lowering *l, bool *done)
{
    struct ew_graph *g = l->g;
    const int from = ew_qview_sole(g, l->value), first = g->n_nodes;
    struct ew_qview x;
    if (from < 0 || !find_norm(g, from, &x))
        return EW_OK;
    const struct ew_node n = g->nodes[from];
    const struct ew_shape *s = &g->values[n.in[0]].t.shape;
    struct ew_shape filters = {.rank = s->rank, .dim = {s->dim[s->rank - 1]}};
    const struct ew_shape each = {1, {s->dim[s->rank - 1]}}, one = {0};
    for (int i = 1; i < filters.rank; i++)
        filters.dim[i] = 1;
    int made[3], zero, out;
    EW_TRY(ew_qview_const(g, n.name, EW_S8, &filters, &made[0]));
    EW_TRY(ew_qview_const(g, n.name, EW_F32, &each, &made[1]));
    EW_TRY(ew_qview_const(g, n.name, EW_S32, &each, &made[2]));
    EW_TRY(ew_qview_const(g, n.name, EW_S8, &one, &zero));
    if (!fill_norm(g, &n, ew_qview_scale(g, &x), made))
        return EW_OK;
    const int in[] = {x.q,  x.scale,     x.zero,     made[0], made[1],
                      zero, l->to.scale, l->to.zero, made[2]};
    const struct ew_qconv_attr attr = {.conv = {.groups = each.dim[0]}, .clamp = l->clamp};
    EW_TRY(ew_graph_add(g, &ew_op_qlinear_conv, n.name, &attr, ew_inputs(in, (int)EW_COUNT(in)),
                        &out));
    return ew_lower_place(l, first, out, done);
}
