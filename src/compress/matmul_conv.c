/* SPDX-License-Identifier: Apache-2.0 */
/* Turns matrix products with constant matrices, and their biases, into 1x1 convolutions:
 *
 *   x [N, d..., C] W [C, O] [+ b]      conv(x, W' [O, 1..., C], b)
 *
 * Convolution kernels have epilogues for bias, residual and activation (fuse_epilogue.c); those of
 * products have not.  This covers the layers of transformers. */
#include <stdlib.h>
#include <string.h>

#include "compress/pass.h"
#include "graph/layout.h"
#include "graph/ops.h"
#include "graph/readers.h"
#include "op/conv.h"

#define MOST_RANK 5 /* images of three dimensions */

static bool is_float_weight(const struct ew_graph *g, int value)
{
    return ew_pass_is_floats(g, value) && g->values[value].kind != EW_VALUE_ACT;
}

static bool fits(const struct ew_graph *g, const struct ew_node *n)
{
    if (n->op != &ew_op_matmul || !is_float_weight(g, n->in[1]))
        return false;
    const struct ew_shape *x = &g->values[n->in[0]].t.shape, *w = &g->values[n->in[1]].t.shape;
    return x->rank >= 3 && x->rank <= MOST_RANK && w->rank == 2 && ew_shape_count(w) > 0;
}

/* W' in the convolution's layout, replacing W if the graph owns it exclusively. */
static ew_err turn_weights(struct ew_graph *g, const struct ew_readers *r, int value, int rank,
                           int *out)
{
    static const int turned[] = {1, 0};
    const struct ew_tensor w = g->values[value].t;
    struct ew_shape shape = {rank, {w.shape.dim[1]}};
    for (int i = 1; i < rank; i++)
        shape.dim[i] = i == rank - 1 ? w.shape.dim[0] : 1;
    struct ew_tensor to = w;
    if (!ew_pass_owns(g, r, value)) {
        EW_TRY(ew_pass_new_param(g, g->values[value].name, &shape, out));
        to.data = g->values[*out].t.data;
        ew_tensor_permute(&w, turned, &to);
        return EW_OK;
    }
    const size_t bytes = ew_tensor_bytes(&w);
    EW_CLEANUP(ew_free_ptr) void *copy = malloc(bytes);
    EW_CHECK(copy, EW_ERR_MEMORY, "%s: no memory to transpose it", g->values[value].name);
    to.data = copy;
    ew_tensor_permute(&w, turned, &to);
    memcpy(w.data, copy, bytes);
    g->values[value].t.shape = shape;
    *out = value;
    return EW_OK;
}

/* The node that adds a bias along the last axis of `value`, as its only use, and the bias; -1:
 * none. */
static int find_bias(const struct ew_graph *g, const struct ew_readers *r, int value, int *bias)
{
    const int add = ew_readers_only(r, value);
    if (add < 0 || g->nodes[add].op != &ew_op_add)
        return -1;
    const int *in = g->nodes[add].in;
    *bias = in[in[0] == value];
    if (!is_float_weight(g, *bias))
        return -1;
    const struct ew_shape *y = &g->values[value].t.shape, *b = &g->values[*bias].t.shape;
    const bool row = b->rank > 0 && b->rank <= y->rank &&
                     b->dim[b->rank - 1] == y->dim[y->rank - 1] &&
                     ew_shape_count(b) == y->dim[y->rank - 1];
    return row ? add : -1;
}

/* Reshapes the bias to one dimension. */
static ew_err flat_bias(struct ew_graph *g, int *bias)
{
    const struct ew_tensor b = g->values[*bias].t;
    if (b.shape.rank == 1)
        return EW_OK;
    const struct ew_shape list = {1, {ew_tensor_count(&b)}};
    EW_TRY(ew_pass_new_param(g, g->values[*bias].name, &list, bias));
    memcpy(g->values[*bias].t.data, b.data, ew_tensor_bytes(&b));
    return EW_OK;
}

/* Replaces the product, or the addition of its bias, by the convolution. */
static ew_err convert(struct ew_graph *g, struct ew_readers *r, int node, void *ctx)
{
    const struct ew_node *product = &g->nodes[node];
    if (!fits(g, product))
        return EW_OK;
    const int rank = g->values[product->in[0]].t.shape.rank;
    int in[3] = {product->in[0]}, bias = -1;
    const int add = find_bias(g, r, product->out[0], &bias);
    struct ew_conv_attr *attr = ew_arena_alloc(&g->arena, sizeof(*attr));
    EW_CHECK(attr, EW_ERR_MEMORY, "%s: no memory to make it a convolution", product->name);
    *attr = (struct ew_conv_attr){.groups = 1};
    EW_TRY(turn_weights(g, r, product->in[1], rank, &in[1]));
    if (add >= 0) {
        EW_TRY(flat_bias(g, &bias));
        in[2] = bias;
    }
    struct ew_node *conv = &g->nodes[add >= 0 ? add : node];
    conv->op = &ew_op_conv;
    conv->name = product->name;
    conv->attr = attr;
    EW_TRY(ew_readers_set_all(r, (int)(conv - g->nodes), in, add >= 0 ? 3 : 2));
    if (add >= 0)
        ew_readers_detach(r, node);
    return EW_OK;
}

ew_err ew_pass_matmul_conv(struct ew_graph *g)
{
    return ew_pass_each_node(g, convert, NULL);
}
