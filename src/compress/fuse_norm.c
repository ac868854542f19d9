/* SPDX-License-Identifier: Apache-2.0 */
/* For training: fuses the activation after a batch norm or a convolution, and the addition between
 * norm and activation, into it.  Saves one pass over the tensor forward and one to three backward,
 * and the intermediate values need not be kept.  Nodes and values keep their numbers, since
 * gradients are addressed by value and dropout is seeded by node: the activation's node stays, with
 * an unused output. */
#include <string.h>

#include "compress/pass.h"
#include "graph/ops.h"
#include "graph/readers.h"
#include "op/conv.h"
#include "op/norm.h"

/* The epilogue in an attribute struct. */
static struct ew_epilogue_attr *norm_end(void *attr)
{
    return &((struct ew_batch_norm_attr *)attr)->end;
}

static struct ew_epilogue_attr *conv_end(void *attr)
{
    return &((struct ew_conv_attr *)attr)->end;
}

/* An operator that can absorb an activation, and which ones. */
struct fusable_op {
    const struct ew_op *op;
    struct ew_epilogue_attr *(*end)(void *attr);
    int max_in;
    bool (*takes)(const struct ew_node *n, enum ew_act act);
};

static bool norm_takes(const struct ew_node *n, enum ew_act act)
{
    const struct ew_batch_norm_attr *a = n->attr;
    return !a->training_mode && (!a->added || act == EW_ACT_RELU);
}

/* Only relu, whose derivative follows from its output. */
static bool conv_takes(const struct ew_node *n, enum ew_act act)
{
    return act == EW_ACT_RELU;
}

static const struct fusable_op norm_host = {&ew_op_batch_norm, norm_end, INT32_MAX, norm_takes};
static const struct fusable_op conv_host = {&ew_op_conv, conv_end, 3, conv_takes};

/* The producer of the node's input, if the node is its only use and it can absorb the activation;
 * else NULL. */
static struct ew_node *host_before(struct ew_graph *g, const struct fusable_op *h,
                                   const struct ew_readers *r, int node, enum ew_act act)
{
    const int from = ew_readers_sole_producer(r, g->nodes[node].in[0]);
    if (from < 0 || g->nodes[from].op != h->op)
        return NULL;
    struct ew_node *host = &g->nodes[from];
    const bool plain = h->end(host->attr)->act == EW_ACT_NONE && host->n_out == 1 &&
                       host->n_in <= h->max_in && h->takes(host, act);
    return plain ? host : NULL;
}

/* Swaps the outputs of host and activation node. */
static ew_err absorb_activation(struct ew_graph *g, struct ew_readers *r,
                                const struct fusable_op *h, struct ew_node *host, int node,
                                const struct ew_epilogue_attr *end)
{
    const struct ew_node *act = &g->nodes[node];
    const int from = host->out[0], to = act->out[0];
    void *a = ew_arena_alloc(&g->arena, host->op->attr_size);
    EW_CHECK(a, EW_ERR_MEMORY, "%s: no memory to fuse it", host->name);
    memcpy(a, host->attr, host->op->attr_size);
    *h->end(a) = *end;
    host->attr = a;
    host->out[0] = to;
    act->out[0] = from;
    g->values[to].producer = (int)(host - g->nodes);
    g->values[from].producer = node;
    return ew_readers_set(r, node, 0, to);
}

static ew_err fuse(struct ew_graph *g, const struct fusable_op *h)
{
    EW_CLEANUP(ew_readers_free_ptr) struct ew_readers *r = NULL;
    EW_TRY(ew_readers_new(g, &r));
    for (int k = 0; k < g->n_nodes; k++) {
        struct ew_epilogue_attr end = {0};
        if (g->nodes[k].n_in == 0 || g->nodes[k].n_out != 1 || !ew_act_of_node(g, k, &end))
            continue;
        struct ew_node *host = host_before(g, h, r, k, (enum ew_act)end.act);
        if (host)
            EW_TRY(absorb_activation(g, r, h, host, k, &end));
    }
    return EW_OK;
}

/* ---- Additions ---- */

/* True if the batch norm `from` can absorb the addition of `other`, which must be computed before
 * it. */
static bool can_add(const struct ew_graph *g, int from, int other)
{
    if (from < 0 || other < 0 || g->nodes[from].op != &ew_op_batch_norm)
        return false;
    const struct ew_node *n = &g->nodes[from];
    const struct ew_batch_norm_attr *a = n->attr;
    return !a->training_mode && !a->added && a->end.act == EW_ACT_NONE && n->n_in == 5 &&
           n->n_out == 1 && g->values[other].producer < from &&
           ew_shape_equal(&g->values[other].t.shape, &g->values[n->out[0]].t.shape) &&
           g->values[other].t.dtype == g->values[n->out[0]].t.dtype;
}

/* Absorbs the addition: swaps the outputs of batch norm and addition. */
static ew_err absorb_add(struct ew_graph *g, struct ew_readers *r, int from, int node, int slot)
{
    struct ew_node *norm = &g->nodes[from];
    const struct ew_node *sum = &g->nodes[node];
    const int own = norm->out[0], to = sum->out[0];
    struct ew_batch_norm_attr *a = ew_arena_alloc(&g->arena, sizeof(*a));
    EW_CHECK(a, EW_ERR_MEMORY, "%s: no memory to fuse it", norm->name);
    *a = *(const struct ew_batch_norm_attr *)norm->attr;
    a->added = true;
    norm->attr = a;
    int in[6];
    memcpy(in, norm->in, 5 * sizeof(*in));
    in[5] = sum->in[1 - slot];
    EW_TRY(ew_readers_set_all(r, from, in, 6));
    norm->out[0] = to;
    sum->out[0] = own;
    g->values[to].producer = from;
    g->values[own].producer = node;
    ew_readers_detach(r, node);
    return EW_OK;
}

ew_err ew_pass_fuse_add(struct ew_graph *g)
{
    EW_CLEANUP(ew_readers_free_ptr) struct ew_readers *r = NULL;
    EW_TRY(ew_readers_new(g, &r));
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        if (n->op != &ew_op_add || n->n_in != 2 || n->in[0] == n->in[1])
            continue;
        for (int slot = 0; slot < 2; slot++) {
            const int from = ew_readers_sole_producer(r, n->in[slot]);
            if (!can_add(g, from, n->in[1 - slot]))
                continue;
            EW_TRY(absorb_add(g, r, from, k, slot));
            break;
        }
    }
    return EW_OK;
}

ew_err ew_pass_fuse_norm(struct ew_graph *g)
{
    return fuse(g, &norm_host);
}

ew_err ew_pass_fuse_relu(struct ew_graph *g)
{
    return fuse(g, &conv_host);
}
