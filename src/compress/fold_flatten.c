/* SPDX-License-Identifier: Apache-2.0 */
/* Channels-first networks flatten [N, C, H, W] before their first dense layer: in channels-last a
 * transpose, a flatten and a gemm.  Permuting the columns of the constant weights removes the
 * transpose. */
#include <stdlib.h>
#include <string.h>

#include "compress/pass.h"
#include "graph/layout.h"
#include "graph/ops.h"
#include "graph/readers.h"
#include "op/math_attr.h"
#include "op/qlinear.h"
#include "op/shape_attr.h"

/* The nodes of a match. */
struct match {
    const struct ew_node *transpose, *flatten, *gemm;
    int weights; /* of the gemm */
};

/* Matches a dense layer with constant weights [n, k]. */
static bool find_gemm(const struct ew_graph *g, struct match *m)
{
    const struct ew_gemm_attr *a = m->gemm->attr;
    const struct ew_qgemm_attr *q = m->gemm->attr;
    const bool floats = m->gemm->op == &ew_op_gemm;
    m->weights = floats ? 1 : EW_QGEMM_B;
    if (!floats && m->gemm->op != &ew_op_qlinear_gemm)
        return false;
    return (floats ? !a->trans_a && a->trans_b : q->trans_b) &&
           ew_pass_is_constant(g, m->gemm->in[m->weights]);
}

/* Matches gemm(flatten(transpose(x)), constant [n, k]) whose intermediate values have single uses.
 */
static bool find(const struct ew_graph *g, const struct ew_readers *r, int node, struct match *m)
{
    m->gemm = &g->nodes[node];
    if (!find_gemm(g, m))
        return false;
    const int flat = m->gemm->in[0];
    const int from = ew_readers_sole_producer(r, flat);
    if (from < 0 || !(g->nodes[from].op->flags & EW_OP_VIEW))
        return false;
    m->flatten = &g->nodes[from];
    const int image = m->flatten->in[0];
    const int before = ew_readers_sole_producer(r, image);
    if (before < 0 || g->nodes[before].op != &ew_op_transpose)
        return false;
    m->transpose = &g->nodes[before];
    /* axis 0, the batch, must not move */
    const struct ew_transpose_attr *t = m->transpose->attr;
    const struct ew_shape *s = &g->values[image].t.shape, *f = &g->values[flat].t.shape;
    return t->perm.n == s->rank && t->perm.v[0] == 0 && f->rank == 2 && f->dim[0] == s->dim[0];
}

/* Permutes the weights row by row in place, so that a network's largest weights are never in memory
 * twice. */
static ew_err permute_rows(const struct ew_tensor *wide, const int *perm)
{
    struct ew_tensor row = *wide, moved;
    row.shape.dim[0] = 1;
    const size_t bytes = ew_tensor_bytes(&row);
    EW_CLEANUP(ew_free_ptr) void *turned = malloc(bytes ? bytes : 1);
    EW_CHECK(turned, EW_ERR_MEMORY, "no memory for a row of weights");
    for (int64_t i = 0; i < wide->shape.dim[0]; i++) {
        row.data = (char *)wide->data + (size_t)i * bytes;
        moved = row;
        moved.data = turned;
        ew_tensor_permute(&row, perm, &moved);
        memcpy(row.data, turned, bytes);
    }
    return EW_OK;
}

/* Makes the node a flatten of `value` from axis 1: what it was may depend on the places of axes
 * with one element (Flatten with axis 2, Squeeze) or copy a dimension (Reshape). */
static ew_err flatten_all(struct ew_graph *g, struct ew_readers *r, int node, int value)
{
    struct ew_flatten_attr *a = ew_arena_alloc(&g->arena, sizeof(*a));
    EW_CHECK(a, EW_ERR_MEMORY, "%s: no memory to flatten", g->nodes[node].name);
    *a = (struct ew_flatten_attr){.axis = 1};
    g->nodes[node].op = &ew_op_flatten;
    g->nodes[node].attr = a;
    return ew_readers_set_all(r, node, &value, 1);
}

/* Permutes the weights' columns to the memory order of x, and drops the transpose.  `only_own`: in
 * place, and not for weights that the graph does not own exclusively. */
static ew_err fold(struct ew_graph *g, struct ew_readers *r, int node, void *only_own)
{
    const bool in_place = *(const bool *)only_own;
    struct match m;
    if (!find(g, r, node, &m))
        return EW_OK;
    const struct ew_transpose_attr *t = m.transpose->attr;
    const struct ew_value *old = &g->values[m.gemm->in[m.weights]];
    const struct ew_shape *image = &g->values[m.flatten->in[0]].t.shape;
    int perm[EW_MAX_RANK] = {0}, id;
    struct ew_tensor wide = old->t, moved;
    if (image->rank >= EW_MAX_RANK)
        return EW_OK;
    wide.shape.rank = image->rank;
    for (int i = 1; i < image->rank; i++)
        wide.shape.dim[i] = image->dim[i];
    for (int i = 1; i < image->rank; i++)
        perm[t->perm.v[i]] = i; /* inverse */
    if (in_place && !ew_pass_owns(g, r, m.gemm->in[m.weights]))
        return EW_OK;
    if (in_place) {
        EW_TRY(permute_rows(&wide, perm));
    } else {
        EW_TRY(ew_pass_new_weights(g, m.gemm->in[m.weights], &id));
        moved = wide;
        moved.data = g->values[id].t.data;
        ew_tensor_permute(&wide, perm, &moved);
        EW_TRY(ew_readers_set(r, node, m.weights, id));
    }
    return flatten_all(g, r, (int)(m.flatten - g->nodes), m.transpose->in[0]);
}

ew_err ew_pass_fold_flatten(struct ew_graph *g)
{
    return ew_pass_each_node(g, fold, &(bool){false});
}

ew_err ew_pass_fold_flatten_own(struct ew_graph *g)
{
    return ew_pass_each_node(g, fold, &(bool){true});
}
