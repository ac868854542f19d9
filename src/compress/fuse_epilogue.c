/* SPDX-License-Identifier: Apache-2.0 */
/* Fusing what follows a convolution into its epilogue:
 *
 *   conv - act                  act(sum)
 *   conv - add z [- act]        act(sum + z)
 *   conv - act - add z          act(sum) + z
 *   batch_norm - act            if no convolution absorbed the norm (DenseNet)
 *
 * The fused node stands where the last node of the pattern stood, since z may be computed after the
 * convolution. */
#include <string.h>

#include "compress/pass.h"
#include "graph/ops.h"
#include "graph/readers.h"
#include "op/conv.h"
#include "op/norm.h"

struct fuser {
    struct ew_graph *g;
    struct ew_readers *readers;
};

/* The producer of `value`, if it is of this operator and the value has one use; else NULL. */
static const struct ew_node *sole(const struct fuser *f, const struct ew_op *op, int value)
{
    const int from = ew_readers_sole_producer(f->readers, value);
    return from >= 0 && f->g->nodes[from].op == op ? &f->g->nodes[from] : NULL;
}

static const struct ew_node *sole_conv(const struct fuser *f, int value)
{
    return sole(f, &ew_op_conv, value);
}

/* Replaces node `at` by `host` with these inputs and attributes. */
static ew_err put(struct fuser *f, const struct ew_node *host, int at, const int *in, int n_in,
                  const void *attr)
{
    struct ew_node *n = &f->g->nodes[at];
    void *own = ew_arena_alloc(&f->g->arena, host->op->attr_size);
    EW_CHECK(own, EW_ERR_MEMORY, "%s: no memory to fuse it", host->name);
    memcpy(own, attr, host->op->attr_size);
    EW_TRY(ew_readers_set_all(f->readers, at, in, n_in));
    n->op = host->op;
    n->name = host->name;
    n->attr = own;
    n->channels_first = host->channels_first;
    ew_readers_detach(f->readers, (int)(host - f->g->nodes));
    return EW_OK;
}

/* Replaces node `at` by the convolution with `attr` and optionally another input. */
static ew_err replace(struct fuser *f, const struct ew_node *conv, int at,
                      const struct ew_conv_attr *attr, int add)
{
    int in[4];
    for (int i = 0; i < 4; i++)
        in[i] = i < conv->n_in ? conv->in[i] : -1;
    if (add >= 0)
        in[3] = add;
    return put(f, conv, at, in, add >= 0 ? 4 : conv->n_in, attr);
}

static bool has_add(const struct ew_node *conv)
{
    return conv->n_in > 3 && conv->in[3] >= 0;
}

static ew_err fuse_activation(struct fuser *f, int at)
{
    const struct ew_node *n = &f->g->nodes[at];
    const struct ew_node *conv = n->n_out == 1 && n->n_in ? sole_conv(f, n->in[0]) : NULL;
    if (!conv)
        return EW_OK;
    struct ew_conv_attr attr = *(const struct ew_conv_attr *)conv->attr;
    if (attr.end.act != EW_ACT_NONE || attr.end.add_after || !ew_act_of_node(f->g, at, &attr.end))
        return EW_OK;
    return replace(f, conv, at, &attr, -1);
}

static ew_err fuse_norm(struct fuser *f, int at)
{
    struct ew_graph *g = f->g;
    const struct ew_node *act = &g->nodes[at];
    const struct ew_node *norm =
        act->n_out == 1 && act->n_in ? sole(f, &ew_op_batch_norm, act->in[0]) : NULL;
    if (!norm || norm->n_out != 1)
        return EW_OK;
    struct ew_batch_norm_attr attr = *(const struct ew_batch_norm_attr *)norm->attr;
    if (attr.end.act != EW_ACT_NONE || attr.training_mode || !ew_act_of_node(g, at, &attr.end))
        return EW_OK;
    return put(f, norm, at, norm->in, norm->n_in, &attr);
}

static ew_err fuse_add(struct fuser *f, int at)
{
    const struct ew_node *n = &f->g->nodes[at];
    if (n->op != &ew_op_add || n->in[0] == n->in[1])
        return EW_OK;
    const struct ew_shape *out = &f->g->values[n->out[0]].t.shape;
    /* of two candidates the later, whose result is still cached */
    int side = -1;
    for (int i = 0; i < 2; i++) {
        const struct ew_node *conv = sole_conv(f, n->in[i]);
        const bool fits = conv && !has_add(conv) &&
                          ew_shape_equal(&f->g->values[n->in[i]].t.shape, out) &&
                          ew_shape_equal(&f->g->values[n->in[1 - i]].t.shape, out);
        if (fits &&
            (side < 0 || f->g->values[n->in[i]].producer > f->g->values[n->in[side]].producer))
            side = i;
    }
    if (side < 0)
        return EW_OK;
    const struct ew_node *conv = &f->g->nodes[f->g->values[n->in[side]].producer];
    struct ew_conv_attr attr = *(const struct ew_conv_attr *)conv->attr;
    attr.end.add_after = attr.end.act != EW_ACT_NONE;
    return replace(f, conv, at, &attr, n->in[1 - side]);
}

static ew_err fuse(struct ew_graph *g, struct ew_readers *r, int node, void *ctx)
{
    struct fuser f = {g, r};
    EW_TRY(fuse_activation(&f, node));
    EW_TRY(fuse_norm(&f, node));
    EW_TRY(fuse_add(&f, node));
    /* producers of a fused node's outputs, for the next match */
    for (int i = 0; i < g->nodes[node].n_out; i++)
        if (g->nodes[node].out[i] >= 0)
            g->values[g->nodes[node].out[i]].producer = node;
    return EW_OK;
}

ew_err ew_pass_fuse_epilogue(struct ew_graph *g)
{
    return ew_pass_each_node(g, fuse, NULL);
}
