/* SPDX-License-Identifier: Apache-2.0 */
/* Activation checkpointing: what a training plan keeps from forward to backward, and what it
 * recomputes.
 *
 * A value that backward reads but that was not kept is recomputed from the nearest kept values,
 * just before it is needed (Chen et al. 2016, Training deep nets with sublinear memory cost). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan_impl.h"

#define CHEAP_CHAIN 3 /* longest chain of cheap operators that is recomputed rather than kept */

/* ---- Recomputation ---- */

static bool available(const struct ew_plan *p, int value)
{
    value = ew_plan_source(p, value);
    return value < 0 || ew_plan_has_data(p, value) || p->keep[value] ||
           p->g->values[value].kind == EW_VALUE_INPUT || p->recompute[value].first >= 0;
}

/* Marks the nodes and values to recompute in order to get `value` from available values. */
static void mark_chain(const struct ew_plan *p, int value, bool *value_needed, bool *node_needed)
{
    value_needed[value] = true;
    for (int k = p->g->values[value].producer; k >= 0; k--) {
        const struct ew_node *n = &p->g->nodes[k];
        for (int i = 0; i < n->n_out; i++)
            node_needed[k] |= n->out[i] >= 0 && value_needed[n->out[i]];
        for (int i = 0; node_needed[k] && i < n->n_in; i++)
            if (!available(p, n->in[i]))
                value_needed[n->in[i]] = true;
    }
}

static ew_err recompute(struct ew_plan *p, int value)
{
    EW_CLEANUP(ew_free_ptr) bool *values = calloc((size_t)p->g->n_values + 1, sizeof(bool));
    EW_CLEANUP(ew_free_ptr) bool *nodes = calloc((size_t)p->g->n_nodes + 1, sizeof(bool));
    EW_CHECK(values && nodes, EW_ERR_MEMORY, "no memory to plan graph %s", p->g->name);
    mark_chain(p, value, values, nodes);
    for (int k = 0; k <= p->g->values[value].producer; k++) {
        const int out = p->g->nodes[k].out[0];
        if (!nodes[k] || ew_plan_source(p, out) != out) /* recomputed by its reader */
            continue;
        EW_TRY(ew_plan_add_forward(p, k, true));
    }
    return EW_OK;
}

ew_err ew_plan_saved_slot(struct ew_plan *p, int value, struct ew_slot **out)
{
    if (!available(p, value))
        EW_TRY(recompute(p, value));
    *out = ew_plan_latest(p, value);
    return EW_OK;
}

/* ---- What to keep ---- */

/* Without a memory limit, large values that are a few memory-bound operators away from what
 * backward reads anyway (a batch norm's output from its input, a residual sum from its operands)
 * are still recomputed: this saves up to half of the memory for a few per cent of the time. */
#define LARGE_SHARE 64 /* a value is large from total activation bytes / LARGE_SHARE on, */
#define LARGE_BYTES ((size_t)4 << 20) /* and if it exceeds the caches */
/* At this arithmetic intensity (MACs per byte of activations) memory-bound operators are a small
 * part of the time, so that more of them may be recomputed: video networks have 52 to 142,
 * ResNet-18 55, ResNet-50 27, MobileNets 4. */
#define DENSE_MACS  32
#define DENSE_SHARE 256

static size_t activation_bytes(const struct ew_graph *g)
{
    size_t total = 0;
    for (int v = 0; v < g->n_values; v++)
        total += g->values[v].producer >= 0 ? ew_tensor_bytes(&g->values[v].t) : 0;
    return total;
}

/* Values that some node's backward reads. */
static void mark_saved(const struct ew_graph *g, bool *saved)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        const unsigned bits = ew_op_saved(n->op, n->attr);
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] >= 0)
                saved[n->in[i]] |= ew_plan_reads_input(bits, i);
        for (int i = 0; i < n->n_out; i++)
            if (n->out[i] >= 0)
                saved[n->out[i]] |= bits >> (8 + i) & 1;
    }
}

/* Length of the chain, this node included, that recomputes its outputs from kept values.  With
 * `saved`, from values that backward reads anyway, and CHEAP_CHAIN + 1 if that would read too much.
 */
static int recompute_depth(const struct ew_plan *p, const struct ew_node *n, const bool *saved,
                           const int *depth)
{
    int deepest = 0;
    size_t read = 0;
    if (saved && (n->n_out != 1 || (n->op->flags & EW_OP_CONCAT)))
        return CHEAP_CHAIN + 1;
    for (int i = 0; i < n->n_in; i++) {
        const int v = n->in[i];
        if (v < 0 || ew_plan_has_data(p, v))
            continue;
        if (saved && p->keep[v] && !saved[v])
            return CHEAP_CHAIN + 1;
        deepest = depth[v] > deepest ? depth[v] : deepest;
        read += ew_tensor_bytes(&p->g->values[v].t);
    }
    return saved && read > 2 * ew_tensor_bytes(&p->g->values[n->out[0]].t) ? CHEAP_CHAIN + 1
                                                                           : deepest + 1;
}

/* Stops keeping outputs of at least `bytes` of operators without MACs, in chains of at most `chain`
 * operators: recomputing a longer chain would need all its values at once. */
static ew_err drop_cheap(struct ew_plan *p, size_t bytes, int chain, const bool *saved)
{
    EW_CLEANUP(ew_free_ptr) int *depth = calloc((size_t)p->g->n_values + 1, sizeof(*depth));
    EW_CHECK(depth, EW_ERR_MEMORY, "no memory to plan graph %s", p->g->name);
    for (int k = 0; k < p->g->n_nodes; k++) {
        const struct ew_node *n = &p->g->nodes[k];
        const int away = p->costs[k].macs > 0 ? chain + 1 : recompute_depth(p, n, saved, depth);
        for (int i = 0; away <= chain && i < n->n_out; i++)
            if (n->out[i] >= 0 && ew_tensor_bytes(&p->g->values[n->out[i]].t) >= bytes) {
                p->keep[n->out[i]] = false;
                depth[n->out[i]] = away;
            }
    }
    return EW_OK;
}

/* The size from which values are recomputed, and in *chain the longest chain. */
static size_t large_bytes(const struct ew_plan *p, int *chain)
{
    const struct ew_graph *g = p->g;
    const size_t total = activation_bytes(g);
    double macs = 0;
    for (int k = 0; k < g->n_nodes; k++)
        macs += (double)p->costs[k].macs;
    const bool dense = ew_backend_info(p->be)->shares_host && macs >= DENSE_MACS * (double)total;
    const size_t part = total / (dense ? DENSE_SHARE : LARGE_SHARE);
    *chain = dense ? CHEAP_CHAIN : 1;
    return part > LARGE_BYTES ? part : LARGE_BYTES;
}

/* Devices whose arithmetic is much faster than their memory (macs_per_byte) also recompute 1x1
 * convolutions: what counts is the memory traffic per byte that is not kept.  A batch norm has 2,
 * the 1x1 convolution that widens a bottleneck of ResNet-50 1.6 to 2.5 in bfloat16; a residual sum
 * has 3, and is kept: it ends the chains.  Smaller values than a traffic share take a launch for
 * little memory.  Networks of few activations fit on any card, and time counts more there. */
#define MOST_TRAFFIC  2.5
#define TRAFFIC_CHAIN 2
#define TRAFFIC_SHARE 512
#define TRAFFIC_TOTAL ((size_t)1 << 30)

/* True if the node multiplies at most once per input channel and output: it has no window. */
static bool is_pointwise(const struct ew_plan *p, int node)
{
    const struct ew_node *n = &p->g->nodes[node];
    if (p->costs[node].macs == 0)
        return true;
    const struct ew_shape *in = &p->g->values[n->in[0]].t.shape;
    return in->rank > 0 && p->costs[node].macs <=
                               ew_tensor_count(&p->g->values[n->out[0]].t) * in->dim[in->rank - 1];
}

/* Memory traffic of recomputing a node's output, per byte of that; arithmetic counts as traffic
 * that takes as long.  HUGE_VAL for windows (a first layer reads little but is slow), and if it
 * would read a value that backward does not need. */
static double recompute_traffic(const struct ew_plan *p, int node, const bool *saved)
{
    const struct ew_node *n = &p->g->nodes[node];
    const double out = (double)ew_tensor_bytes(&p->g->values[n->out[0]].t);
    double bytes =
        out + (double)p->costs[node].macs / (double)ew_backend_info(p->be)->macs_per_byte;
    if (!is_pointwise(p, node))
        return HUGE_VAL;
    for (int i = 0; i < n->n_in; i++) {
        const int v = n->in[i];
        if (v < 0 || ew_plan_has_data(p, v))
            continue;
        if (p->keep[v] && !saved[v])
            return HUGE_VAL;
        bytes += (double)ew_tensor_bytes(&p->g->values[v].t);
    }
    return bytes / out;
}

/* Stops keeping values that take little memory traffic to recompute. */
static ew_err drop_by_traffic(struct ew_plan *p, const bool *saved)
{
    EW_CLEANUP(ew_free_ptr) int *depth = calloc((size_t)p->g->n_values + 1, sizeof(*depth));
    EW_CHECK(depth, EW_ERR_MEMORY, "no memory to plan graph %s", p->g->name);
    const size_t part = activation_bytes(p->g) / TRAFFIC_SHARE;
    const size_t least = part > LARGE_BYTES ? part : LARGE_BYTES;
    for (int k = 0; k < p->g->n_nodes; k++) {
        const struct ew_node *n = &p->g->nodes[k];
        const int v = n->n_out == 1 ? n->out[0] : -1;
        if (v < 0 || !saved[v] || (n->op->flags & EW_OP_CONCAT) ||
            ew_tensor_bytes(&p->g->values[v].t) < least ||
            recompute_traffic(p, k, saved) > MOST_TRAFFIC)
            continue;
        int deepest = 0;
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] >= 0 && depth[n->in[i]] > deepest)
                deepest = depth[n->in[i]];
        if (deepest < TRAFFIC_CHAIN) {
            p->keep[v] = false;
            depth[v] = deepest + 1;
        }
    }
    return EW_OK;
}

static ew_err drop_large(struct ew_plan *p)
{
    EW_CLEANUP(ew_free_ptr) bool *saved = calloc((size_t)p->g->n_values + 1, sizeof(*saved));
    EW_CHECK(saved, EW_ERR_MEMORY, "no memory to plan graph %s", p->g->name);
    mark_saved(p->g, saved);
    if (ew_backend_info(p->be)->macs_per_byte > 0 && activation_bytes(p->g) >= TRAFFIC_TOTAL)
        return drop_by_traffic(p, saved);
    int chain;
    const size_t bytes = large_bytes(p, &chain);
    return drop_cheap(p, bytes, chain, saved);
}

/* bytes[k]: bytes of values live across the border behind node k. */
static void crossing_bytes(const struct ew_graph *g, const int *last_use, size_t *bytes)
{
    for (int v = 0; v < g->n_values; v++) {
        const int from = g->values[v].producer;
        for (int k = from; from >= 0 && k < last_use[v]; k++)
            bytes[k] += ew_tensor_bytes(&g->values[v].t);
    }
}

/* The segment border with the fewest live bytes near the point where `share` of all activation
 * bytes are produced. */
static int find_border(const struct ew_graph *g, const size_t *bytes, double share, double window)
{
    const double total = (double)activation_bytes(g);
    double made = 0;
    int best = -1;
    for (int k = 0; k < g->n_nodes; k++) {
        for (int i = 0; i < g->nodes[k].n_out; i++)
            if (g->nodes[k].out[i] >= 0)
                made += (double)ew_tensor_bytes(&g->values[g->nodes[k].out[i]].t);
        const double at = made / total;
        if (at >= share - window && at <= share + window && (best < 0 || bytes[k] < bytes[best]))
            best = k;
    }
    return best;
}

static ew_err keep_borders(struct ew_plan *p, int segments)
{
    const struct ew_graph *g = p->g;
    EW_CLEANUP(ew_free_ptr) size_t *bytes = calloc((size_t)g->n_nodes + 1, sizeof(*bytes));
    EW_CLEANUP(ew_free_ptr) int *last = calloc((size_t)g->n_values + 1, sizeof(*last));
    EW_CHECK(bytes && last, EW_ERR_MEMORY, "no memory to plan graph %s", g->name);
    for (int k = 0; k < g->n_nodes; k++)
        for (int i = 0; i < g->nodes[k].n_in; i++)
            if (g->nodes[k].in[i] >= 0)
                last[g->nodes[k].in[i]] = k;
    crossing_bytes(g, last, bytes);
    memset(p->keep, 0, (size_t)g->n_values * sizeof(*p->keep));
    int last_border = -1;
    for (int s = 1; s < segments; s++) {
        const int border = find_border(g, bytes, (double)s / segments, 0.5 / segments);
        for (int v = 0; border >= 0 && v < g->n_values; v++)
            if (g->values[v].producer >= 0 && g->values[v].producer <= border && last[v] > border)
                p->keep[v] = true;
        last_border = border > last_border ? border : last_border;
    }
    /* Backward starts with the last segment, right after forward, so all of it is kept. */
    for (int v = 0; v < g->n_values; v++)
        if (g->values[v].producer > last_border)
            p->keep[v] = true;
    return EW_OK;
}

ew_err ew_plan_choose_kept(struct ew_plan *p)
{
    for (int v = 0; v < p->g->n_values; v++)
        p->keep[v] = true;
    if (p->strategy.segments > 1)
        EW_TRY(keep_borders(p, p->strategy.segments));
    else if (p->strategy.cheap)
        EW_TRY(drop_cheap(p, 0, CHEAP_CHAIN, NULL));
    else if (p->opts.mode == EW_PLAN_TRAIN)
        EW_TRY(drop_large(p));
    for (int i = 0; i < p->g->n_outputs; i++)
        p->keep[p->g->outputs[i]] = true;
    return EW_OK;
}
