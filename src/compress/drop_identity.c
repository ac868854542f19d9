/* SPDX-License-Identifier: Apache-2.0 */
/* Removes nodes that are identities in inference. */
#include <stdlib.h>

#include "compress/pass.h"
#include "graph/ops.h"
#include "graph/readers.h"

/* A clip of integers to their type's range, as in QCDQ form. */
static bool clips_nothing(const struct ew_graph *g, const struct ew_node *n)
{
    const enum ew_dtype dtype = g->values[n->in[0]].t.dtype;
    if (n->op != &ew_op_clip || (dtype != EW_S8 && dtype != EW_U8))
        return false;
    const int64_t ends[] = {dtype == EW_S8 ? INT8_MIN : 0, dtype == EW_S8 ? INT8_MAX : UINT8_MAX};
    for (int i = 1; i < n->n_in; i++)
        if (n->in[i] >= 0 && (!ew_pass_is_constant(g, n->in[i]) ||
                              ew_tensor_get_int(&g->values[n->in[i]].t, 0) != ends[i - 1]))
            return false;
    return true;
}

static bool hands_on(const struct ew_graph *g, const struct ew_readers *r, const struct ew_node *n)
{
    if (n->n_in < 1 || n->in[0] < 0 || n->out[0] < 0)
        return false;
    const struct ew_tensor *x = &g->values[n->in[0]].t, *y = &g->values[n->out[0]].t;
    if (x->dtype != y->dtype || !ew_shape_equal(&x->shape, &y->shape))
        return false;
    for (int i = 1; i < n->n_out; i++)
        if (n->out[i] >= 0 && ew_readers_count(r, n->out[i]) > 0) /* a mask that is read */
            return false;
    return (n->op->flags & (EW_OP_VIEW | EW_OP_IDENTITY)) != 0 || clips_nothing(g, n);
}

static ew_err drop(struct ew_graph *g, struct ew_readers *r, int node, void *ctx)
{
    bool *is_output = ctx; /* by value */
    const struct ew_node *n = &g->nodes[node];
    if (!hands_on(g, r, n))
        return EW_OK;
    const int in = n->in[0], out = n->out[0];
    /* an output whose source is an input, a weight or another output keeps its node */
    if (is_output[out] && (g->values[in].kind != EW_VALUE_ACT || is_output[in]))
        return EW_OK;
    is_output[in] |= is_output[out];
    if (is_output[out])
        EW_TRY(ew_graph_claim_name(g, in, g->values[out].name));
    ew_readers_detach(r, node);
    return ew_readers_replace(r, out, in);
}

ew_err ew_pass_drop_identity(struct ew_graph *g)
{
    EW_CLEANUP(ew_free_ptr) bool *is_output = calloc((size_t)g->n_values + 1, sizeof(*is_output));
    EW_CHECK(is_output, EW_ERR_MEMORY, "no memory for a pass over graph %s", g->name);
    for (int i = 0; i < g->n_outputs; i++)
        is_output[g->outputs[i]] = true;
    return ew_pass_each_node(g, drop, is_output);
}
