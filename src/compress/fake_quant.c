/* SPDX-License-Identifier: Apache-2.0 */
/* Layers in quantisation-aware training, and their conversion to QDQ form. */
#include "compress/fake_quant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "compress/pow2.h"
#include "compress/quant_view.h"
#include "compress/quantize.h"
#include "graph/ops.h"

#define KEY_CHARS 288

static bool is(const struct ew_graph *g, int node, const struct ew_op *op)
{
    return node >= 0 && g->nodes[node].op == op;
}

static bool has_fake_quant(const struct ew_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++)
        if (is(g, k, &ew_op_fake_quant))
            return true;
    return false;
}

static void key_of(const char *value, char key[KEY_CHARS])
{
    snprintf(key, KEY_CHARS, "qat.position.%.240s", value);
}

static ew_err note(struct ew_graph *g, int value, int position)
{
    char key[KEY_CHARS], text[16];
    key_of(g->values[value].name, key);
    snprintf(text, sizeof(text), "%d", position);
    return ew_graph_note_set(g, key, text);
}

/* Reads the noted position of weights or a bias; false: none. */
static bool noted(const struct ew_graph *g, int value, int *position)
{
    char key[KEY_CHARS];
    int64_t v;
    if (value < 0)
        return false;
    key_of(g->values[value].name, key);
    const char *text = ew_graph_note(g, key);
    if (!text || !ew_num_int(text, &v) || v < EW_POW2_LEAST || v > EW_POW2_MOST)
        return false;
    *position = (int)v;
    return true;
}

static bool is_layer(const struct ew_graph *g, int node)
{
    return (is(g, node, &ew_op_conv) || is(g, node, &ew_op_gemm) || is(g, node, &ew_op_matmul)) &&
           g->nodes[node].n_in > 1 && g->nodes[node].in[1] >= 0 && ew_quantize_has_weights(g, node);
}

/* The fake_quant from which the value comes through data movement alone; -1: none. */
static int source_of(const struct ew_graph *g, int value)
{
    int from = value >= 0 ? g->values[value].producer : -1;
    while (from >= 0 && g->nodes[from].n_in > 0 && g->nodes[from].in[0] >= 0 &&
           ew_quantize_moves(&g->nodes[from]))
        from = g->values[g->nodes[from].in[0]].producer;
    return is(g, from, &ew_op_fake_quant) ? from : -1;
}

static bool is_zero(const struct ew_tensor *t)
{
    for (int64_t i = 0; i < ew_tensor_count(t); i++)
        if (fpclassify(((const float *)t->data)[i]) != FP_ZERO)
            return false;
    return true;
}

/* Starts the bias at the position that post-training quantisation would choose.  A zero bias gets
 * the range of the weights, since it will be trained; one shared by two layers the coarser
 * position. */
static ew_err note_bias(struct ew_graph *g, int bias, struct ew_pow2_layer *l)
{
    const struct ew_tensor *t = &g->values[bias].t;
    int other;
    l->has_bias = is_zero(t);
    l->bias = l->weights;
    const int position = ew_pow2_bias(t, l);
    if (noted(g, bias, &other) && other < position)
        return EW_OK;
    return note(g, bias, position);
}

ew_err ew_fake_quant_note(struct ew_graph *g, const struct ew_node *layer, int weights)
{
    const int from = source_of(g, layer->in[0]), bias = layer->n_in > 2 ? layer->in[2] : -1;
    struct ew_pow2_layer l = {.weights = weights};
    EW_TRY(note(g, layer->in[1], weights));
    if (from < 0 || bias < 0 || (layer->op->flags & EW_OP_BATCH_NORM))
        return EW_OK;
    const double scale = ew_tensor_get(&g->values[g->nodes[from].in[1]].t, 0);
    EW_CHECK(ew_pow2_position(scale, &l.input), EW_ERR_INTERNAL,
             "%s: its input has no power-of-two scale", layer->name);
    return note_bias(g, bias, &l);
}

/* True if the node's weights are rounded in training; how, in *out. */
static bool weights_of(const struct ew_graph *g, int node, struct ew_fake_quant_weight *out)
{
    const struct ew_node *n = &g->nodes[node];
    const int from = n->n_in > 0 ? source_of(g, n->in[0]) : -1;
    if (from < 0 || !is_layer(g, node))
        return false;
    const double x_scale = ew_tensor_get(&g->values[g->nodes[from].in[1]].t, 0);
    const struct ew_quantize_layer l = ew_quantize_layer_of(n, n->in, x_scale);
    *out = (struct ew_fake_quant_weight){
        .value = l.weights, .other = l.bias, .how = {.axis = l.axis, .x_scale = x_scale}};
    out->how.pow2 = noted(g, l.weights, &out->how.position);
    return true;
}

/* The same for the bias of those weights. */
static bool bias_of(const struct ew_graph *g, const struct ew_fake_quant_weight *weights,
                    struct ew_fake_quant_weight *out)
{
    *out =
        (struct ew_fake_quant_weight){.value = weights->other, .other = -1, .how = {.pow2 = true}};
    if (weights->how.pow2)
        return noted(g, out->value, &out->how.position);
    out->other = weights->value;
    out->how = weights->how;
    out->how.is_bias = true;
    return out->value >= 0;
}

static void list_once(const struct ew_fake_quant_weight *r, struct ew_fake_quant_weight *list,
                      int *n)
{
    for (int i = 0; i < *n; i++)
        if (list[i].value == r->value)
            return;
    list[(*n)++] = *r;
}

ew_err ew_fake_quant_weights(const struct ew_graph *g, struct ew_fake_quant_weight **out, int *n)
{
    *out = NULL;
    *n = 0;
    if (!has_fake_quant(g))
        return EW_OK;
    *out = calloc(2 * (size_t)g->n_nodes + 1, sizeof(**out)); /* weights and biases */
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory for %d layers", g->n_nodes);
    for (int k = 0; k < g->n_nodes; k++) {
        struct ew_fake_quant_weight weights, bias;
        if (!weights_of(g, k, &weights))
            continue;
        list_once(&weights, *out, n);
        if (bias_of(g, &weights, &bias))
            list_once(&bias, *out, n);
    }
    return EW_OK;
}

/* ---- Conversion ---- */

/* Replaces the node by a copy with inputs in[], followed (if `pairs`) by a quantiser-dequantiser
 * pair with this scale and zero point at each output. */
static ew_err replace_with_pairs(struct ew_graph *g, int node, int first, const int *in,
                                 const int *pairs)
{
    struct ew_node n = g->nodes[node];
    EW_CLEANUP(ew_free_ptr) int *slots = calloc((size_t)(n.n_in + n.n_out) + 1, sizeof(*slots));
    EW_CHECK(slots, EW_ERR_MEMORY, "%s: no memory", n.name);
    int *out = slots + n.n_in;
    memcpy(slots, in, (size_t)n.n_in * sizeof(*slots));
    n.in = slots;
    EW_TRY(ew_graph_add_node(g, &n, out));
    for (int i = 0; pairs && i < n.n_out; i++)
        if (n.out[i] >= 0)
            EW_TRY(ew_fake_quant_pair(g, (const int[]){out[i], pairs[0], pairs[1]}, NULL, &out[i]));
    return ew_graph_splice(g, node, first, out);
}

/* A pool that was moved before a quantiser gets a pair at its input. */
static ew_err settle_pool(struct ew_graph *g, int node)
{
    const struct ew_node n = g->nodes[node];
    const int pool = g->values[n.in[0]].producer;
    if (!is(g, pool, &ew_op_max_pool))
        return EW_OK;
    const struct ew_node p = g->nodes[pool];
    const int from = g->values[p.in[0]].producer, first = g->n_nodes;
    int in[1];
    if (p.n_in != 1 || is(g, from, &ew_op_dequantize_linear))
        return EW_OK;
    EW_TRY(ew_fake_quant_pair(g, (const int[]){p.in[0], n.in[1], n.in[2]}, NULL, &in[0]));
    return replace_with_pairs(g, pool, first, in, NULL);
}

static ew_err settle_pair(struct ew_graph *g, int node)
{
    const struct ew_node n = g->nodes[node];
    const int first = g->n_nodes;
    int out;
    EW_TRY(ew_fake_quant_pair(g, n.in, NULL, &out));
    return ew_graph_splice(g, node, first, &out);
}

/* A data-movement node gets a pair at its output with its input's parameters. */
static ew_err settle_move(struct ew_graph *g, int node)
{
    const struct ew_node *n = &g->nodes[node];
    if (!ew_quantize_moves(n) || n->n_in < 1 || n->in[0] < 0)
        return EW_OK;
    const int from = g->values[n->in[0]].producer;
    if (!is(g, from, &ew_op_dequantize_linear) || g->nodes[from].n_in < 3)
        return EW_OK;
    for (int i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == n->out[0])
            return EW_OK; /* graph outputs stay float32 */
    for (int k = 0; k < g->n_nodes; k++)
        if (is(g, k, &ew_op_quantize_linear) && g->nodes[k].in[0] == n->out[0])
            return EW_OK;
    return replace_with_pairs(g, node, g->n_nodes, n->in, &g->nodes[from].in[1]);
}

/* Replaces a layer by one with integer weights. */
static ew_err settle_layer(struct ew_graph *g, int node)
{
    struct ew_node n = g->nodes[node];
    struct ew_qview x;
    int in[3] = {n.in[0], n.in[1], n.n_in > 2 ? n.in[2] : -1}, out, position;
    const int first = g->n_nodes;
    if (!is_layer(g, node) || n.n_in > 3 || !ew_qview_of(g, n.in[0], &x))
        return EW_OK;
    n.in = in;
    if (noted(g, in[1], &position)) {
        struct ew_pow2_layer l = {.weights = position};
        l.has_bias = noted(g, in[2], &l.bias);
        EW_CHECK(ew_pow2_position(ew_qview_scale(g, &x), &l.input), EW_ERR_FORMAT,
                 "%s: its input has no power-of-two scale", n.name);
        EW_TRY(ew_pow2_weights(g, &l, n.n_in, in));
    } else {
        EW_TRY(ew_quantize_weights(g, &n, in));
    }
    EW_TRY(ew_graph_add_node(g, &n, &out));
    return ew_graph_splice(g, node, first, &out);
}

ew_err ew_pass_convert_fake_quant(struct ew_graph *g)
{
    if (!has_fake_quant(g))
        return EW_OK;
    for (int k = 0; k < g->n_nodes; k++)
        if (is(g, k, &ew_op_fake_quant)) {
            const int before = g->n_nodes;
            EW_TRY(settle_pool(g, k));
            k += g->n_nodes - before; /* inserted before it */
            EW_TRY(settle_pair(g, k));
        }
    for (int k = 0; k < g->n_nodes; k++)
        EW_TRY(settle_move(g, k));
    for (int k = 0; k < g->n_nodes; k++)
        EW_TRY(settle_layer(g, k));
    EW_TRY(ew_graph_sweep(g));
    return ew_graph_infer(g);
}
