/* SPDX-License-Identifier: Apache-2.0 */
/* What passes share, and their order. */
#include "compress/pass.h"

#include <stdlib.h>

ew_err ew_pass_uses(const struct ew_graph *g, struct ew_use **out)
{
    struct ew_use *u = calloc((size_t)g->n_values + 1, sizeof(*u));
    EW_CHECK(u, EW_ERR_MEMORY, "no memory for a pass over graph %s", g->name);
    for (int v = 0; v < g->n_values; v++)
        u[v].consumer = -1;
    for (int k = 0; k < g->n_nodes; k++) {
        for (int i = 0; i < g->nodes[k].n_in; i++) {
            if (g->nodes[k].in[i] < 0)
                continue;
            u[g->nodes[k].in[i]].count++;
            u[g->nodes[k].in[i]].consumer = k;
        }
    }
    for (int i = 0; i < g->n_outputs; i++)
        u[g->outputs[i]].count++;
    *out = u;
    return EW_OK;
}

void ew_pass_replace(struct ew_graph *g, int old, int new)
{
    for (int k = 0; k < g->n_nodes; k++)
        for (int i = 0; i < g->nodes[k].n_in; i++)
            if (g->nodes[k].in[i] == old)
                g->nodes[k].in[i] = new;
    for (int i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == old)
            g->outputs[i] = new;
}

bool ew_pass_is_constant(const struct ew_graph *g, int value)
{
    if (value < 0)
        return false;
    const struct ew_value *v = &g->values[value];
    return v->kind != EW_VALUE_INPUT && v->t.data;
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
    return ew_graph_claim_name(g, *out, old.name);
}

ew_err ew_pass_all(struct ew_graph *g)
{
    EW_TRY(ew_pass_drop_identity(g));
    EW_TRY(ew_pass_lower_quant(g));
    EW_TRY(ew_pass_fold_constants(g));
    EW_TRY(ew_pass_fold_pad(g));
    EW_TRY(ew_pass_fold_batch_norm(g));
    EW_TRY(ew_pass_fold_flatten(g));
    EW_TRY(ew_pass_trim_taps(g));
    return ew_pass_fuse_epilogue(g);
}
