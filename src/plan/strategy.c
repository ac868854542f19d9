/* SPDX-License-Identifier: Apache-2.0 */
/* What a training plan keeps from forward to backward, and what it computes again.
 *
 * Keeping less costs time: a value that backward reads but that was not kept is computed once more,
 * from the nearest values that were, just before it is needed. */
#include <stdlib.h>
#include <string.h>

#include "plan/plan_impl.h"

#define CHEAP_CHAIN 3 /* cheap operators in a row that are computed again rather than kept */

/* ---- Computing again ---- */

static bool available(const struct ew_plan *p, int value)
{
    value = ew_plan_source(p, value);
    return value < 0 || ew_plan_has_data(p, value) || p->keep[value] ||
           p->g->values[value].kind == EW_VALUE_INPUT || p->recompute[value].first >= 0;
}

/* Marks the nodes between the available values and `value`, producers of needed values first. */
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

static ew_err compute_again(struct ew_plan *p, int value)
{
    EW_CLEANUP(ew_free_ptr) bool *values = calloc((size_t)p->g->n_values + 1, sizeof(bool));
    EW_CLEANUP(ew_free_ptr) bool *nodes = calloc((size_t)p->g->n_nodes + 1, sizeof(bool));
    EW_CHECK(values && nodes, EW_ERR_MEMORY, "no memory to plan graph %s", p->g->name);
    mark_chain(p, value, values, nodes);
    for (int k = 0; k <= p->g->values[value].producer; k++) {
        if (!nodes[k] || ew_plan_is_fused_into_reader(p, k))
            continue;
        struct ew_cost cost;
        ew_plan_node_cost(p, k, &cost);
        p->recompute_flops += (double)cost.flops;
        EW_TRY(ew_plan_add_forward(p, k, true));
    }
    return EW_OK;
}

ew_err ew_plan_saved_slot(struct ew_plan *p, int value, struct ew_slot **out)
{
    if (!available(p, value))
        EW_TRY(compute_again(p, value));
    *out = ew_plan_latest(p, value);
    return EW_OK;
}

/* ---- What to keep ---- */

/* Drops values of operators that multiply nothing, up to a few in a row: a longer chain would have
 * to be computed again as a whole, and kept as a whole. */
static void drop_cheap(struct ew_plan *p, int *depth)
{
    for (int k = 0; k < p->g->n_nodes; k++) {
        const struct ew_node *n = &p->g->nodes[k];
        struct ew_cost cost;
        ew_plan_node_cost(p, k, &cost);
        int deepest = 0;
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] >= 0 && depth[n->in[i]] > deepest)
                deepest = depth[n->in[i]];
        const bool drop = cost.macs == 0 && deepest < CHEAP_CHAIN;
        for (int i = 0; i < n->n_out; i++) {
            if (n->out[i] < 0)
                continue;
            p->keep[n->out[i]] = !drop;
            depth[n->out[i]] = drop ? deepest + 1 : 0;
        }
    }
}

/* Of the largest values, those that are a pass over memory away from what is kept anyway (a batch
 * norm's output from its input) are computed again in any case: for a few per cent of the time they
 * would take up to half of the memory. */
#define LARGE_SHARE 64                /* a value is large from this part of all activations on, */
#define LARGE_BYTES ((size_t)4 << 20) /* and beyond the caches */

static size_t activation_bytes(const struct ew_graph *g)
{
    size_t total = 0;
    for (int v = 0; v < g->n_values; v++)
        total += g->values[v].producer >= 0 ? ew_tensor_bytes(&g->values[v].t) : 0;
    return total;
}

static void drop_large(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    const size_t total = activation_bytes(g);
    const size_t large = total / LARGE_SHARE > LARGE_BYTES ? total / LARGE_SHARE : LARGE_BYTES;
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        struct ew_cost cost;
        ew_plan_node_cost(p, k, &cost);
        bool near = cost.macs == 0 && n->n_out == 1;
        for (int i = 0; i < n->n_in && near; i++)
            near = n->in[i] < 0 || ew_plan_has_data(p, n->in[i]) ||
                   (i < 8 && (ew_op_saved(n->op, n->attr) >> i & 1) && p->keep[n->in[i]]);
        if (near && ew_tensor_bytes(&g->values[n->out[0]].t) >= large)
            p->keep[n->out[0]] = false;
    }
}

/* Bytes that are made at or before each node and read after it. */
static void crossing_bytes(const struct ew_graph *g, const int *last_use, size_t *bytes)
{
    for (int v = 0; v < g->n_values; v++) {
        const int from = g->values[v].producer;
        for (int k = from; from >= 0 && k < last_use[v]; k++)
            bytes[k] += ew_tensor_bytes(&g->values[v].t);
    }
}

/* The best border near the point where `share` of all activation bytes have been made: the fewest
 * bytes cross it. */
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
    /* Backward begins with the last segment, right after forward: it is kept as it is. */
    for (int v = 0; v < g->n_values; v++)
        if (g->values[v].producer > last_border)
            p->keep[v] = true;
    return EW_OK;
}

ew_err ew_plan_choose_kept(struct ew_plan *p)
{
    const int n = p->g->n_values;
    EW_CLEANUP(ew_free_ptr) int *depth = calloc((size_t)n + 1, sizeof(*depth));
    EW_CHECK(depth, EW_ERR_MEMORY, "no memory to plan graph %s", p->g->name);
    for (int v = 0; v < n; v++)
        p->keep[v] = true;
    if (p->strategy.segments > 1)
        EW_TRY(keep_borders(p, p->strategy.segments));
    else if (p->strategy.cheap)
        drop_cheap(p, depth);
    else if (p->opts.mode == EW_PLAN_TRAIN)
        drop_large(p);
    for (int i = 0; i < p->g->n_outputs; i++)
        p->keep[p->g->outputs[i]] = true;
    return EW_OK;
}
