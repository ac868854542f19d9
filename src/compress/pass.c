/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of passes, and their order. */
#include "compress/pass.h"

#include "base/arena_move.h"
#include "graph/ops.h"
#include "graph/readers.h"
#include "op/axis.h"

bool ew_pass_is_constant(const struct ew_graph *g, int value)
{
    if (value < 0)
        return false;
    const struct ew_value *v = &g->values[value];
    return v->kind != EW_VALUE_INPUT && v->t.data;
}

bool ew_pass_is_floats(const struct ew_graph *g, int value)
{
    return ew_pass_is_constant(g, value) && g->values[value].t.dtype == EW_F32;
}

bool ew_pass_is_spatial_mean(const struct ew_graph *g, int node)
{
    const struct ew_node *n = &g->nodes[node];
    struct ew_ints axes;
    if (n->op != &ew_op_reduce_mean || n->n_in < 2 || !ew_pass_is_constant(g, n->in[1]))
        return false;
    const int rank = g->values[n->in[0]].t.shape.rank;
    if (rank < 3 || ew_axes_read(&g->values[n->in[1]].t, rank, 0, &axes) != EW_OK)
        return false;
    unsigned mask = 0;
    for (int i = 0; i < axes.n; i++)
        mask |= 1u << axes.v[i];
    return mask == (1u << (rank - 1)) - 2;
}

ew_err ew_pass_new_param(struct ew_graph *g, const char *name, const struct ew_shape *shape,
                         int *out)
{
    struct ew_tensor t = {.dtype = EW_F32, .shape = *shape};
    t.data = ew_arena_alloc(&g->arena, ew_tensor_bytes(&t));
    EW_CHECK(t.data, EW_ERR_MEMORY, "%s: no memory for folded weights", name);
    EW_TRY(ew_graph_const(g, name, EW_VALUE_PARAM, &t, false, out));
    return ew_graph_claim_name(g, *out, name); /* it takes the place of the one it was made from */
}

ew_err ew_pass_new_weights(struct ew_graph *g, int like, int *out)
{
    const struct ew_value old = g->values[like];
    struct ew_tensor t = old.t;
    t.data = ew_arena_alloc(&g->arena, ew_tensor_bytes(&t));
    EW_CHECK(t.data, EW_ERR_MEMORY, "%s: no memory for folded weights", old.name);
    const bool known = old.kind == EW_VALUE_ACT; /* computed from constants */
    EW_TRY(ew_graph_const(g, old.name, known ? EW_VALUE_CONST : old.kind, &t, false, out));
    g->values[*out].frozen = old.frozen;
    return ew_graph_claim_name(g, *out, old.name);
}

ew_err ew_pass_each_node(struct ew_graph *g, ew_pass_rewrite *rewrite, void *ctx)
{
    struct ew_readers *r;
    EW_TRY(ew_readers_new(g, &r));
    ew_err e = EW_OK;
    for (int k = 0; k < g->n_nodes && e == EW_OK; k++)
        e = rewrite(g, r, k, ctx);
    ew_readers_free(r);
    EW_TRY(e);
    EW_TRY(ew_graph_sweep(g));
    return ew_graph_infer(g);
}

ew_err ew_pass_all(struct ew_graph *g)
{
    EW_TRY(ew_pass_drop_identity(g));
    EW_TRY(ew_pass_convert_fake_quant(g));
    EW_TRY(ew_pass_lower_quant(g));
    EW_TRY(ew_pass_fold_constants(g));
    EW_TRY(ew_pass_fold_pad(g));
    EW_TRY(ew_pass_fold_batch_norm(g));
    EW_TRY(ew_pass_fold_flatten(g));
    EW_TRY(ew_pass_fuse_layer_norm(g));
    EW_TRY(ew_pass_matmul_conv(g));
    EW_TRY(ew_pass_transposed_conv(g));
    EW_TRY(ew_pass_fold_scale(g));
    EW_TRY(ew_pass_trim_taps(g));
    return ew_pass_fuse_epilogue(g);
}

bool ew_pass_owns(const struct ew_graph *g, const struct ew_readers *r, int value)
{
    const struct ew_tensor *t = &g->values[value].t;
    if (ew_readers_count(r, value) != 1 ||
        !ew_arena_is_alone(&g->arena, t->data, ew_tensor_bytes(t)))
        return false;
    int holders = 0;
    for (int i = 0; i < g->n_values; i++)
        holders += g->values[i].t.data == t->data;
    return holders == 1;
}
