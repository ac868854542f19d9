/* SPDX-License-Identifier: Apache-2.0 */
/* Folds zero padding into the convolution after it: exporters write TensorFlow's "same" padding of
 * a stride-2 convolution, asymmetric, as a separate Pad. */
#include <math.h>
#include <string.h>

#include "compress/pass.h"
#include "graph/layout.h"
#include "graph/ops.h"
#include "graph/readers.h"
#include "op/conv.h"
#include "op/shape_attr.h"

enum { DATA, PADS, VALUE, AXES };

static bool is_op(const struct ew_graph *g, int node, const struct ew_op *op)
{
    return node >= 0 && g->nodes[node].op == op;
}

/* The pads of a zero-padding node before and after each axis; false: not constant zero padding. */
static bool read_pads(const struct ew_graph *g, const struct ew_node *n, int64_t *before,
                      int64_t *after)
{
    const struct ew_tensor *x = &g->values[n->in[DATA]].t;
    struct ew_ints pads, axes = {.n = x->shape.rank};
    for (int i = 0; i < axes.n; i++)
        axes.v[i] = i;
    if (((const struct ew_pad_attr *)n->attr)->mode != EW_PAD_CONSTANT || x->dtype != EW_F32 ||
        !ew_pass_is_constant(g, n->in[PADS]) ||
        ew_tensor_ints(&g->values[n->in[PADS]].t, "pads", &pads) != EW_OK)
        return false;
    if (n->n_in > VALUE && n->in[VALUE] >= 0 &&
        (!ew_pass_is_constant(g, n->in[VALUE]) ||
         fpclassify(ew_tensor_get(&g->values[n->in[VALUE]].t, 0)) != FP_ZERO))
        return false;
    if (n->n_in > AXES && n->in[AXES] >= 0 &&
        (!ew_pass_is_constant(g, n->in[AXES]) ||
         ew_tensor_ints(&g->values[n->in[AXES]].t, "axes", &axes) != EW_OK))
        return false;
    memset(before, 0, EW_MAX_RANK * sizeof(*before));
    memset(after, 0, EW_MAX_RANK * sizeof(*after));
    for (int i = 0; i < axes.n; i++) {
        const int64_t a = axes.v[i] < 0 ? axes.v[i] + x->shape.rank : axes.v[i];
        if (a < 0 || a >= x->shape.rank || pads.n != 2 * axes.n || pads.v[i] < 0 ||
            pads.v[i + axes.n] < 0)
            return false;
        before[a] = pads.v[i];
        after[a] = pads.v[i + axes.n];
    }
    return true;
}

/* Permutes the pads through a transpose between the two. */
static void turn(const struct ew_node *n, int rank, int64_t *pads)
{
    const struct ew_ints *perm = &((const struct ew_transpose_attr *)n->attr)->perm;
    int64_t was[EW_MAX_RANK];
    memcpy(was, pads, sizeof(was));
    for (int i = 0; i < rank; i++)
        pads[i] = was[perm->n == rank ? perm->v[i] : rank - 1 - i];
}

/* The convolution's attributes with the padding added; false if that is not possible. */
static bool widen(const struct ew_conv_attr *a, int rank, const int64_t *before,
                  const int64_t *after, struct ew_conv_attr *out)
{
    const int spatial = rank - 2;
    if (a->win.auto_pad != EW_AUTO_PAD_NOTSET || before[0] || after[0] || before[rank - 1] ||
        after[rank - 1])
        return false;
    *out = *a;
    if (out->win.pad.n == 0)
        out->win.pad = (struct ew_ints){.n = 2 * spatial};
    for (int i = 0; i < spatial; i++) {
        out->win.pad.v[i] += before[i + 1];
        out->win.pad.v[i + spatial] += after[i + 1];
    }
    return true;
}

static ew_err fold(struct ew_graph *g, struct ew_readers *r, int conv, void *ctx)
{
    struct ew_node *c = &g->nodes[conv];
    if (c->op != &ew_op_conv || c->channels_first)
        return EW_OK;
    const int rank = g->values[c->in[0]].t.shape.rank;
    int64_t before[EW_MAX_RANK], after[EW_MAX_RANK];
    struct ew_conv_attr wide, *kept;
    int at = ew_readers_sole_producer(r, c->in[0]);
    const int transpose = is_op(g, at, &ew_op_transpose) ? at : -1;
    if (transpose >= 0)
        at = ew_readers_sole_producer(r, g->nodes[transpose].in[0]);
    if (!is_op(g, at, &ew_op_pad) || !read_pads(g, &g->nodes[at], before, after))
        return EW_OK;
    if (transpose >= 0) {
        turn(&g->nodes[transpose], rank, before);
        turn(&g->nodes[transpose], rank, after);
    }
    if (!widen(c->attr, rank, before, after, &wide))
        return EW_OK;
    kept = ew_arena_alloc(&g->arena, sizeof(*kept));
    EW_CHECK(kept, EW_ERR_MEMORY, "no memory for a convolution's attributes");
    *kept = wide;
    c->attr = kept;
    return ew_readers_set(r, transpose >= 0 ? transpose : conv, 0, g->nodes[at].in[DATA]);
}

ew_err ew_pass_fold_pad(struct ew_graph *g)
{
    return ew_pass_each_node(g, fold, NULL);
}
