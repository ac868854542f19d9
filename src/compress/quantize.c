/* SPDX-License-Identifier: Apache-2.0 */
/* Inserting quantisers: choice of values and parameters, and the nodes.  Weights are in
 * quantize_weights.c. */
#include "compress/quantize.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compress/fake_quant.h"
#include "compress/pow2.h"
#include "compress/quant_view.h"
#include "compress/quantize_weights.h"
#include "graph/ops.h"
#include "graph/readers.h"

#define NAME 256

const char *const ew_quantize_names[] = {
#define CHOICE(id, name) name,
    EW_QUANTIZE_MAP(CHOICE)
#undef CHOICE
        NULL};

enum kind {
    FLOAT,    /* not quantised */
    LAYER,    /* has weights */
    JOIN,     /* add, mul, averages: independent scales of inputs and output */
    FUNCTION, /* unary, by table */
    MOVE      /* inputs and outputs share one scale */
};

struct quantizer {
    struct ew_graph *g;
    const struct ew_quantize_opts *o;
    struct ew_readers *readers; /* freed before nodes are added */
    enum kind *kinds;           /* by node */
    int *share;                 /* by value: union-find of values with one scale */
    bool *wanted;               /* by value: it gets a quantiser */
    bool *moved;                /* by value: data movement of a quantised value, in training */
    struct ew_range *of;        /* by value, at the root: joint range */
    int *made;                  /* by value: graph inputs after their quantiser, or -1 */
    int *position;              /* POW2, by value: joint position */
    int *weights;               /* POW2, by node: position of a layer's weights */
    int n_values;               /* before nodes were added */
    bool is_signed;             /* activations are int8 */
};

static bool is_one_of(const struct ew_node *n, const struct ew_op *const *ops)
{
    for (; *ops; ops++)
        if (*ops == n->op)
            return true;
    return false;
}

bool ew_quantize_moves(const struct ew_node *n)
{
    static const struct ew_op *const moves[] = {
        &ew_op_transpose, &ew_op_channel_shuffle, &ew_op_split,  &ew_op_slice,
        &ew_op_max_pool,  &ew_op_global_max_pool, &ew_op_concat, NULL};
    return is_one_of(n, moves) || (n->op->flags & EW_OP_VIEW);
}

static enum kind kind_of(const struct quantizer *q, int node)
{
    static const struct ew_op *const layers[] = {&ew_op_conv, &ew_op_gemm, &ew_op_matmul,
                                                 &ew_op_batch_norm, NULL};
    static const struct ew_op *const joins[] = {&ew_op_add,
                                                &ew_op_mul,
                                                &ew_op_average_pool,
                                                &ew_op_global_average_pool,
                                                &ew_op_adaptive_avg_pool,
                                                NULL};
    const struct ew_node *n = &q->g->nodes[node];
    struct ew_epilogue_attr act = {0};
    if ((q->o->keep && q->o->keep[node]) || n->n_in < 1 ||
        q->g->values[n->in[0]].t.dtype != EW_F32 || ew_pass_is_constant(q->g, n->in[0]))
        return FLOAT;
    if (is_one_of(n, layers))
        return ew_quantize_has_weights(q->g, node) ? LAYER : FLOAT;
    if (ew_pass_is_spatial_mean(q->g, node))
        return JOIN;
    if (is_one_of(n, joins))
        return n->n_in > 1 && ew_pass_is_constant(q->g, n->in[1]) ? FLOAT : JOIN;
    if (ew_quantize_moves(n))
        return MOVE;
    return ew_act_of_node(q->g, node, &act) ? FUNCTION : FLOAT;
}

/* Number of inputs that are activations, not weights, shapes or bounds. */
static int data_inputs(const struct quantizer *q, int node)
{
    const struct ew_node *n = &q->g->nodes[node];
    if (n->op == &ew_op_concat)
        return n->n_in;
    return q->kinds[node] == JOIN && n->op != &ew_op_reduce_mean ? (n->n_in > 1 ? 2 : 1) : 1;
}

/* ---- Shared scales ---- */

static int root_of(const struct quantizer *q, int v)
{
    while (q->share[v] != v)
        v = q->share[v];
    return v;
}

static void join(struct quantizer *q, int a, int b)
{
    a = root_of(q, a);
    b = root_of(q, b);
    q->share[a > b ? a : b] = a > b ? b : a;
}

static void share_scales(struct quantizer *q)
{
    for (int k = 0; k < q->g->n_nodes; k++) {
        const struct ew_node *n = &q->g->nodes[k];
        if (q->kinds[k] != MOVE)
            continue;
        for (int i = 1; i < data_inputs(q, k); i++)
            join(q, n->in[0], n->in[i]);
        for (int i = 0; i < n->n_out; i++)
            if (n->out[i] >= 0)
                join(q, n->in[0], n->out[i]);
    }
    for (int v = 0; v < q->n_values; v++)
        q->of[v] = (struct ew_range){0, 0}; /* zero must be representable */
    for (int v = 0; v < q->n_values; v++) {
        struct ew_range *r = &q->of[root_of(q, v)];
        if (!(q->o->ranges[v].lo <= q->o->ranges[v].hi))
            continue;
        r->lo = fminf(r->lo, q->o->ranges[v].lo);
        r->hi = fmaxf(r->hi, q->o->ranges[v].hi);
    }
}

/* ---- Choice of values ---- */

static bool is_cut(const struct quantizer *q, int node)
{
    struct ew_epilogue_attr act = {0};
    return node >= 0 && ew_act_of_node(q->g, node, &act) &&
           (act.act == EW_ACT_RELU || act.act == EW_ACT_CLIP);
}

/* True if the only use of the value is a relu or clip, which is fused with the producer. */
static bool is_inner(const struct quantizer *q, int v)
{
    const int from = q->g->values[v].producer;
    return from >= 0 && (q->kinds[from] == LAYER || q->kinds[from] == JOIN) &&
           is_cut(q, ew_readers_only(q->readers, v));
}

static void want(struct quantizer *q, int v)
{
    const struct ew_value *value = &q->g->values[v];
    const bool known = q->o->ranges[v].lo <= q->o->ranges[v].hi && isfinite(q->o->ranges[v].lo) &&
                       isfinite(q->o->ranges[v].hi);
    q->wanted[v] =
        known && !ew_value_is_weight(value) && value->t.dtype == EW_F32 && !is_inner(q, v);
}

static void choose_values(struct quantizer *q)
{
    const struct ew_graph *g = q->g;
    for (int k = 0; k < g->n_nodes; k++) {
        if (q->kinds[k] == FLOAT)
            continue;
        for (int i = 0; i < data_inputs(q, k); i++)
            want(q, g->nodes[k].in[i]);
        for (int i = 0; i < g->nodes[k].n_out; i++)
            if (ew_readers_count(q->readers, g->nodes[k].out[i]) > 0)
                want(q, g->nodes[k].out[i]);
    }
    for (int i = 0; i < g->n_outputs && q->o->scheme != EW_QUANTIZE_POW2; i++)
        q->wanted[g->outputs[i]] = false; /* graph outputs stay float32 */
}

/* ---- Positions (power-of-two scales) ---- */

/* True for a hard sigmoid in [0, 1], which the DPU clips at 1 by saturation. */
static bool is_gate(const struct quantizer *q, int v)
{
    return ew_graph_producer(q->g, v, &ew_op_hard_sigmoid) >= 0;
}

/* Values that share a scale get the coarsest position among them. */
static void share_positions(struct quantizer *q)
{
    for (int v = 0; v < q->n_values; v++)
        q->position[v] = EW_POW2_MOST;
    for (int v = 0; v < q->n_values; v++) {
        const struct ew_range *r = &q->o->ranges[v];
        int *at = &q->position[root_of(q, v)];
        if (!q->wanted[v])
            continue;
        const int own = is_gate(q, v)     ? EW_POW2_GATE
                        : q->o->positions ? q->o->positions[v]
                                          : ew_pow2_first(r->lo, r->hi);
        *at = own < *at ? own : *at;
    }
}

/* The value that a layer's sums are requantised to: its output, or that of the relu or clip after
 * it; -1: it stays float32. */
static int rounded_to(const struct quantizer *q, int node)
{
    int v = q->g->nodes[node].out[0];
    if (is_inner(q, v))
        v = q->g->nodes[ew_readers_only(q->readers, v)].out[0];
    return q->wanted[v] ? root_of(q, v) : -1;
}

/* Limits the right shift of sums, input + weights - output, to the hardware's 0 to 16 by making
 * outputs or weights coarser.  A coarser output may be the input of later layers, so this runs in
 * topological order. */
static void settle_positions(struct quantizer *q)
{
    const struct ew_graph *g = q->g;
    bool again = true;
    for (int round = 0; again && round <= g->n_nodes; round++) {
        again = false;
        for (int k = 0; k < g->n_nodes; k++) {
            const int to = q->kinds[k] == LAYER ? rounded_to(q, k) : -1;
            const int in = g->nodes[k].n_in ? root_of(q, g->nodes[k].in[0]) : -1;
            if (to < 0 || to == in || q->position[to] <= q->position[in] + q->weights[k])
                continue;
            q->position[to] = q->position[in] + q->weights[k];
            again = true;
        }
    }
    for (int k = 0; k < g->n_nodes; k++) {
        const int to = q->kinds[k] == LAYER ? rounded_to(q, k) : -1;
        if (to < 0)
            continue;
        const int shift = q->position[root_of(q, g->nodes[k].in[0])] - q->position[to];
        if (shift + q->weights[k] > EW_POW2_SHIFT)
            q->weights[k] = EW_POW2_SHIFT - shift;
    }
}

static void choose_positions(struct quantizer *q)
{
    const struct ew_graph *g = q->g;
    share_positions(q);
    for (int k = 0; k < g->n_nodes; k++)
        if (q->kinds[k] == LAYER) {
            const struct ew_tensor *w = &g->values[g->nodes[k].in[1]].t;
            q->weights[k] = ew_pow2_best(w->data, ew_tensor_count(w));
        }
    settle_positions(q);
}

/* ---- Fewer quantisers, for training ---- */

/* Drops quantisers of moved values, which are quantised already, and moves those before a max pool
 * behind it: rounding commutes with the maximum, has less to do there, and the layer before can be
 * fused with the pool. */
static void spare_values(struct quantizer *q)
{
    const struct ew_graph *g = q->g;
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        if (q->kinds[k] != MOVE)
            continue;
        bool known = true;
        for (int i = 0; i < data_inputs(q, k); i++)
            known &= q->wanted[n->in[i]] || q->moved[n->in[i]];
        for (int i = 0; known && i < n->n_out; i++)
            if (n->out[i] >= 0 && q->wanted[n->out[i]]) {
                q->wanted[n->out[i]] = false;
                q->moved[n->out[i]] = true;
            }
        const int in = n->in[0];
        if (known && n->op == &ew_op_max_pool && q->wanted[in] &&
            g->values[in].kind == EW_VALUE_ACT && ew_readers_only(q->readers, in) == k) {
            q->wanted[in] = false;
            q->wanted[n->out[0]] = true;
        }
    }
}

/* ---- Nodes ---- */

/* Adds scale and zero point of value v as constants. */
static ew_err add_parameters(struct quantizer *q, int v, int *scale, int *zero)
{
    struct ew_graph *g = q->g;
    const struct ew_range r = q->of[root_of(q, v)];
    const bool pow2 = q->o->scheme == EW_QUANTIZE_POW2;
    const float step = pow2          ? ew_pow2_scale(q->position[root_of(q, v)])
                       : r.hi > r.lo ? (r.hi - r.lo) / 255
                                     : 1;
    const int64_t least = pow2 ? 0 : lrintf(-r.lo / step) - (q->is_signed ? 128 : 0);
    const struct ew_shape one = {0};
    char name[NAME];
    snprintf(name, sizeof(name), "%.200s_scale", g->values[v].name);
    EW_TRY(ew_graph_const_float(g, name, step, scale));
    snprintf(name, sizeof(name), "%.200s_zero", g->values[v].name);
    EW_TRY(ew_qview_const(g, name, q->is_signed ? EW_S8 : EW_U8, &one, zero));
    ew_tensor_store_int(&g->values[*zero].t, 0, 1, &least);
    return EW_OK;
}

/* Adds a quantiser-dequantiser pair at `value`, with the parameters of value v of the original
 * graph. */
static ew_err add_pair(struct quantizer *q, int v, int value, int *out)
{
    int in[3] = {value};
    EW_TRY(add_parameters(q, v, &in[1], &in[2]));
    if (q->o->learn)
        return ew_graph_add(q->g, &ew_op_fake_quant, NULL, NULL, ew_inputs(in, 3), out);
    const struct ew_quant_attr attr = {.axis = 1, .dtype = q->is_signed ? EW_S8 : EW_U8};
    EW_TRY(ew_graph_add(q->g, &ew_op_quantize_linear, NULL, &attr, ew_inputs(in, 3), &in[0]));
    return ew_graph_add(q->g, &ew_op_dequantize_linear, NULL, NULL, ew_inputs(in, 3), out);
}

/* Adds integer weights of the original node k, whose inputs are now in[]. */
static ew_err add_weights(struct quantizer *q, int k, const struct ew_node *n, int *in)
{
    struct ew_qview x;
    if (q->o->learn)
        return q->o->scheme == EW_QUANTIZE_POW2 ? ew_fake_quant_note(q->g, n, q->weights[k])
                                                : EW_OK;
    if (q->o->scheme != EW_QUANTIZE_POW2)
        return ew_quantize_weights(q->g, n, in);
    if (n->op == &ew_op_batch_norm || !ew_qview_of(q->g, in[0], &x))
        return EW_OK;
    struct ew_pow2_layer l = {.weights = q->weights[k]};
    EW_CHECK(ew_pow2_position(ew_qview_scale(q->g, &x), &l.input), EW_ERR_INTERNAL,
             "%s: its input has no power-of-two scale", n->name);
    return ew_pow2_weights(q->g, &l, n->n_in, in);
}

/* Replaces node `node`, the original node k, by itself with its quantisers. */
static ew_err surround(struct quantizer *q, int k, int node)
{
    const enum kind kind = q->kinds[k];
    struct ew_graph *g = q->g;
    struct ew_node n = g->nodes[node];
    const int first = g->n_nodes;
    EW_CLEANUP(ew_free_ptr) int *slots = calloc((size_t)(n.n_in + n.n_out) + 1, sizeof(*slots));
    EW_CHECK(slots, EW_ERR_MEMORY, "%s: no memory to quantise it", n.name);
    int *const out = slots + n.n_in;
    memcpy(slots, n.in, (size_t)n.n_in * sizeof(*slots));
    for (int i = 0; i < n.n_in && kind != FLOAT; i++) {
        const int v = n.in[i];
        if (v < 0 || v >= q->n_values || !q->wanted[v] || g->values[v].kind != EW_VALUE_INPUT)
            continue;
        if (q->made[v] < 0)
            EW_TRY(add_pair(q, v, v, &q->made[v]));
        slots[i] = q->made[v];
    }
    n.in = slots;
    if (kind == LAYER)
        EW_TRY(add_weights(q, k, &n, slots));
    EW_TRY(ew_graph_add_node(g, &n, out));
    for (int i = 0; i < n.n_out; i++)
        if (n.out[i] >= 0 && q->wanted[n.out[i]])
            EW_TRY(add_pair(q, n.out[i], out[i], &out[i]));
    return ew_graph_splice(g, node, first, out);
}

static ew_err insert(struct quantizer *q)
{
    struct ew_graph *g = q->g;
    const int n_nodes = g->n_nodes;
    for (int k = 0, at = 0; k < n_nodes; k++) { /* the original node k is now node `at` */
        const int before = g->n_nodes;
        EW_TRY(surround(q, k, at));
        at += g->n_nodes - before + 1;
    }
    EW_TRY(ew_graph_sweep(g));
    return ew_graph_infer(g);
}

ew_err ew_quantize_check_float(const struct ew_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++)
        EW_CHECK(g->nodes[k].op != &ew_op_quantize_linear &&
                     g->nodes[k].op != &ew_op_dequantize_linear &&
                     g->nodes[k].op != &ew_op_fake_quant,
                 EW_ERR_ARG,
                 "%s is quantised already (node %s); give the float32 network that it was made of",
                 g->name, g->nodes[k].name);
    return EW_OK;
}

ew_err ew_quantize_prepare(struct ew_graph *g)
{
    EW_TRY(ew_pass_drop_identity(g));
    EW_TRY(ew_pass_fold_constants(g));
    EW_TRY(ew_pass_fold_pad(g)); /* so that equalisation sees adjacent layers */
    return ew_pass_fold_batch_norm(g);
}

static ew_err run(struct quantizer *q)
{
    const size_t values = (size_t)q->n_values + 1, nodes = (size_t)q->g->n_nodes + 1;
    q->kinds = calloc(nodes, sizeof(*q->kinds));
    q->share = calloc(values, sizeof(*q->share));
    q->wanted = calloc(values, sizeof(*q->wanted));
    q->moved = calloc(values, sizeof(*q->moved));
    q->of = calloc(values, sizeof(*q->of));
    q->made = calloc(values, sizeof(*q->made));
    q->position = calloc(values, sizeof(*q->position));
    q->weights = calloc(nodes, sizeof(*q->weights));
    EW_CHECK(q->kinds && q->share && q->wanted && q->moved && q->of && q->made && q->position &&
                 q->weights,
             EW_ERR_MEMORY, "no memory to quantise graph %s", q->g->name);
    EW_TRY(ew_readers_new(q->g, &q->readers));
    for (int v = 0; v < q->n_values; v++) {
        q->share[v] = v;
        q->made[v] = -1;
    }
    for (int k = 0; k < q->g->n_nodes; k++)
        q->kinds[k] = kind_of(q, k);
    share_scales(q);
    choose_values(q);
    if (q->o->scheme == EW_QUANTIZE_POW2)
        choose_positions(q);
    if (q->o->learn)
        spare_values(q);
    ew_readers_free(q->readers);
    q->readers = NULL;
    return insert(q);
}

ew_err ew_quantize(struct ew_graph *g, const struct ew_quantize_opts *o)
{
    struct quantizer q = {.g = g,
                          .o = o,
                          .n_values = g->n_values,
                          .is_signed = o->is_signed || o->scheme == EW_QUANTIZE_POW2};
    const ew_err e = run(&q);
    ew_readers_free(q.readers);
    free(q.kinds);
    free(q.share);
    free(q.wanted);
    free(q.moved);
    free(q.of);
    free(q.made);
    free(q.position);
    free(q.weights);
    return e;
}
