/* SPDX-License-Identifier: Apache-2.0 */
/* Quantisation of weights. */
#include "compress/quantize_weights.h"

#include <math.h>
#include <stdio.h>

#include "compress/quant_view.h"
#include "graph/ops.h"
#include "op/math_attr.h"
#include "op/quant_weights.h"

#define NAME 256

/* Axis of the output channels: 0 in [O, k..., I] and [n, k], 1 in [k, n]. */
static int channel_axis(const struct ew_node *n)
{
    if (n->op->layer == EW_LAYER_CONV)
        return 0;
    if (n->op->layer == EW_LAYER_DENSE)
        return ((const struct ew_gemm_attr *)n->attr)->trans_b ? 0 : 1;
    return 1;
}

bool ew_quantize_has_weights(const struct ew_graph *g, int node)
{
    const struct ew_node *n = &g->nodes[node];
    for (int i = 1; i < n->n_in; i++)
        if (n->in[i] >= 0 && !ew_pass_is_floats(g, n->in[i]))
            return false;
    if (n->op->flags & EW_OP_BATCH_NORM)
        return g->values[n->in[0]].t.shape.rank > 2;
    const struct ew_shape *w = &g->values[n->in[1]].t.shape;
    const bool matrix = n->op->layer != EW_LAYER_CONV;
    if (matrix && (w->rank != 2 || g->values[n->in[0]].t.shape.rank != 2))
        return false;
    return n->n_in < 3 || n->in[2] < 0 ||
           ew_tensor_count(&g->values[n->in[2]].t) == w->dim[channel_axis(n)];
}

static void quantize_channel(const float *w, const struct ew_weight_channels *c, int64_t at,
                             float scale, int8_t *to)
{
    for (int64_t o = 0; o < c->outer; o++)
        for (int64_t i = 0; i < c->inner; i++) {
            const int64_t k = o * c->step + at * c->inner + i;
            to[k] = (int8_t)fmaxf(fminf(rintf(w[k] / scale), 127), -127);
        }
}

/* Adds dequantize_linear of constants with one scale per index of `axis`. */
static ew_err add_dequantizer(struct ew_graph *g, const int *in, int n_in, int axis, int *out)
{
    const struct ew_quant_attr attr = {.axis = axis};
    return ew_graph_add(g, &ew_op_dequantize_linear, NULL, &attr, ew_inputs(in, n_in), out);
}

static struct ew_weight_rounding rounding_of(const struct ew_quantize_layer *l)
{
    return (struct ew_weight_rounding){.axis = l->axis, .x_scale = l->x_scale};
}

static ew_err quantize_filter(struct ew_graph *g, const struct ew_quantize_layer *l, int *scale,
                              int *out)
{
    const int axis = l->axis;
    const struct ew_value old = g->values[l->weights];
    const struct ew_weight_channels c = ew_weight_channels(&old.t.shape, axis);
    const struct ew_weight_rounding r = rounding_of(l);
    const struct ew_shape each = {1, {c.count}};
    char name[NAME];
    int in[3];
    snprintf(name, sizeof(name), "%.200s_quantized", old.name);
    EW_TRY(ew_qview_const(g, name, EW_S8, &old.t.shape, &in[0]));
    snprintf(name, sizeof(name), "%.200s_scale", old.name);
    EW_TRY(ew_qview_const(g, name, EW_F32, &each, &in[1]));
    snprintf(name, sizeof(name), "%.200s_zero", old.name);
    EW_TRY(ew_qview_const(g, name, EW_S8, &each, &in[2]));
    const struct ew_tensor *bias = l->bias < 0 ? NULL : &g->values[l->bias].t;
    for (int64_t i = 0; i < c.count; i++) {
        float *s = (float *)g->values[in[1]].t.data + i;
        *s = ew_weight_scale(&old.t, bias, &r, i);
        quantize_channel(old.t.data, &c, i, *s, g->values[in[0]].t.data);
    }
    *scale = in[1];
    return add_dequantizer(g, in, 3, axis, out);
}

/* Quantises the bias at the scale of the int32 sums. */
static ew_err quantize_bias(struct ew_graph *g, const struct ew_quantize_layer *l, int w_scale,
                            int *out)
{
    const struct ew_value old = g->values[l->bias];
    const struct ew_shape each = {1, {ew_tensor_count(&old.t)}};
    char name[NAME];
    int in[2];
    snprintf(name, sizeof(name), "%.200s_quantized", old.name);
    EW_TRY(ew_qview_const(g, name, EW_S32, &each, &in[0]));
    snprintf(name, sizeof(name), "%.200s_scale", old.name);
    EW_TRY(ew_qview_const(g, name, EW_F32, &each, &in[1]));
    int32_t *q = g->values[in[0]].t.data;
    float *scale = g->values[in[1]].t.data;
    const float *w = g->values[w_scale].t.data;
    for (int64_t i = 0; i < each.dim[0]; i++) {
        scale[i] = ew_bias_scale(l->x_scale, w[i]);
        q[i] = ew_bias_round((float)ew_tensor_get(&old.t, i), scale[i]);
    }
    return add_dequantizer(g, in, 2, 0, out);
}

ew_err ew_quantize_weights(struct ew_graph *g, const struct ew_node *n, int *in)
{
    struct ew_qview x;
    int scale;
    if ((n->op->flags & EW_OP_BATCH_NORM) || !ew_qview_of(g, in[0], &x))
        return EW_OK;
    const struct ew_quantize_layer l = ew_quantize_layer_of(n, in, ew_qview_scale(g, &x));
    EW_TRY(quantize_filter(g, &l, &scale, &in[1]));
    return l.bias < 0 ? EW_OK : quantize_bias(g, &l, scale, &in[2]);
}

struct ew_quantize_layer ew_quantize_layer_of(const struct ew_node *n, const int *in,
                                              double x_scale)
{
    return (struct ew_quantize_layer){.weights = in[1],
                                      .bias = n->n_in > 2 ? in[2] : -1,
                                      .x_scale = x_scale,
                                      .axis = channel_axis(n)};
}
