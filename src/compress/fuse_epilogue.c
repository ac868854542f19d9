/* SPDX-License-Identifier: Apache-2.0 */
/* Fusing what follows a convolution into its epilogue:
 *
 *   conv - act                  act(sum)
 *   conv - add z [- act]        act(sum + z)
 *   conv - act - add z          act(sum) + z
 *   batch_norm - act            where no convolution took it in (DenseNet)
 *
 * The fused node stands where the last node of the pattern stood, since z may be made after the
 * convolution. */
#include <stdlib.h>
#include <string.h>

#include "compress/pass.h"
#include "op/conv.h"
#include "op/norm.h"

struct fuser {
    struct ew_graph *g;
    struct ew_use *uses;
    const struct ew_op *conv, *add, *norm;
};

/* The node of this operator that makes `value`, which nothing else reads; NULL: none. */
static struct ew_node *sole(const struct fuser *f, const struct ew_op *op, int value)
{
    if (value < 0)
        return NULL;
    const int from = f->g->values[value].producer;
    if (from < 0 || f->g->nodes[from].op != op || f->uses[value].count != 1)
        return NULL;
    return &f->g->nodes[from];
}

static struct ew_node *sole_conv(const struct fuser *f, int value)
{
    return sole(f, f->conv, value);
}

/* Puts the convolution, with `attr` and perhaps another input, in the place of node `at`. */
static ew_err replace(struct fuser *f, const struct ew_node *conv, int at,
                      const struct ew_conv_attr *attr, int add)
{
    struct ew_graph *g = f->g;
    struct ew_node n = *conv;
    n.attr = ew_arena_alloc(&g->arena, sizeof(*attr));
    n.in = ew_arena_array(&g->arena, 4, sizeof(int));
    EW_CHECK(n.attr && n.in, EW_ERR_MEMORY, "%s: no memory to fuse it", conv->name);
    memcpy(n.attr, attr, sizeof(*attr));
    for (int i = 0; i < 4; i++)
        n.in[i] = i < conv->n_in ? conv->in[i] : -1;
    if (add >= 0) {
        n.in[3] = add;
        n.n_in = 4;
    }
    n.out = g->nodes[at].out; /* what the last node made */
    n.n_out = 1;
    g->nodes[at] = n;
    return EW_OK; /* the old convolution has lost its reader: the sweep takes it */
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
    const struct ew_node *norm = act->n_out == 1 && act->n_in ? sole(f, f->norm, act->in[0]) : NULL;
    if (!norm || norm->n_out != 1)
        return EW_OK;
    struct ew_batch_norm_attr attr = *(const struct ew_batch_norm_attr *)norm->attr;
    if (attr.end.act != EW_ACT_NONE || attr.training_mode || !ew_act_of_node(g, at, &attr.end))
        return EW_OK;
    struct ew_node n = *norm;
    n.attr = ew_arena_alloc(&g->arena, sizeof(attr));
    EW_CHECK(n.attr, EW_ERR_MEMORY, "%s: no memory to fuse it", norm->name);
    memcpy(n.attr, &attr, sizeof(attr));
    n.out = act->out;
    g->nodes[at] = n; /* the old one has lost its reader */
    return EW_OK;
}

static ew_err fuse_add(struct fuser *f, int at)
{
    const struct ew_node *n = &f->g->nodes[at];
    if (n->op != f->add || n->in[0] == n->in[1])
        return EW_OK;
    const struct ew_shape *out = &f->g->values[n->out[0]].t.shape;
    /* Of two candidates the later one: its sums are still in the cache. */
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
    const struct ew_node *conv = sole_conv(f, n->in[side]);
    struct ew_conv_attr attr = *(const struct ew_conv_attr *)conv->attr;
    attr.end.add_after = attr.end.act != EW_ACT_NONE;
    return replace(f, conv, at, &attr, n->in[1 - side]);
}

ew_err ew_pass_fuse_epilogue(struct ew_graph *g)
{
    struct fuser f = {.g = g,
                      .conv = ew_op_find("conv"),
                      .add = ew_op_find("add"),
                      .norm = ew_op_find("batch_norm")};
    EW_TRY(ew_pass_uses(g, &f.uses));
    ew_err e = EW_OK;
    for (int k = 0; k < g->n_nodes && e == EW_OK; k++) {
        e = fuse_activation(&f, k);
        if (e == EW_OK)
            e = fuse_norm(&f, k);
        if (e == EW_OK)
            e = fuse_add(&f, k);
        /* What was fused is made here now, for the next node to find. */
        for (int i = 0; i < g->nodes[k].n_out; i++)
            if (g->nodes[k].out[i] >= 0)
                g->values[g->nodes[k].out[i]].producer = k;
    }
    free(f.uses);
    EW_TRY(e);
    EW_TRY(ew_graph_sweep(g));
    return ew_graph_infer(g);
}
