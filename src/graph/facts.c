/* SPDX-License-Identifier: Apache-2.0 */
/* Counting a network: parameters, arithmetic, and the critical datapath length (CDL).
 *
 * CDL is the number of operator nodes on the longest directed path of the network's ONNX form as an
 * inference engine sees it: without batch norms that fold into the convolution before them, nodes
 * that are known before the run, identities, quantisers around integer operators, and transposes
 * that only change the memory layout.
 *
 * In a quantised network 8-bit constants count as parameters, and 32-bit ones as their biases. */
#include "graph/facts.h"

#include <stdlib.h>

#include "graph/layout.h"
#include "graph/ops.h"

bool ew_node_moves_channels(const struct ew_node *n)
{
    if (n->op != &ew_op_transpose)
        return false;
    const struct ew_transpose_attr *a = n->attr;
    const int rank = a->perm.n;
    if (rank < 3 || a->perm.v[0] != 0)
        return false;
    bool to_last = a->perm.v[rank - 1] == 1, to_first = a->perm.v[1] == rank - 1;
    for (int i = 1; i < rank - 1; i++) {
        to_last &= a->perm.v[i] == i + 1;
        to_first &= a->perm.v[i + 1] == i;
    }
    return to_last || to_first;
}

/* A batch norm that is the only reader of a convolution's output, and so folds into it. */
static bool folds(const struct ew_graph *g, const struct ew_node *n, const int *uses)
{
    if (n->op != &ew_op_batch_norm)
        return false;
    const int x = n->in[0];
    return uses[x] == 1 && (ew_graph_producer(g, x, &ew_op_conv) >= 0 ||
                            ew_graph_producer(g, x, &ew_op_conv_transpose) >= 0);
}

static bool is_quantiser(const struct ew_node *n)
{
    return n->op == &ew_op_quantize_linear || n->op == &ew_op_dequantize_linear;
}

/* Integer operators and quantisers. */
static bool is_quantised_node(const struct ew_node *n)
{
    static const struct ew_op *const ops[] = {
        &ew_op_quantize_linear, &ew_op_dequantize_linear,    &ew_op_qlinear_conv,
        &ew_op_qlinear_gemm,    &ew_op_qlinear_matmul,       &ew_op_qlinear_add,
        &ew_op_qlinear_mul,     &ew_op_qlinear_average_pool, &ew_op_qlinear_global_average_pool};
    for (size_t i = 0; i < EW_COUNT(ops); i++)
        if (n->op == ops[i])
            return true;
    return false;
}

/* by_quantised[v]: an integer operator or quantiser reads value v. */
static void mark_quantised(const struct ew_graph *g, bool *by_quantised)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        for (int i = 0; is_quantised_node(n) && i < n->n_in; i++)
            if (n->in[i] >= 0)
                by_quantised[n->in[i]] = true;
    }
}

/* Integer weights or biases. */
static bool is_quantised(const struct ew_value *v, bool by_quantised)
{
    if (v->kind != EW_VALUE_CONST)
        return false;
    if (v->t.dtype == EW_S8 || v->t.dtype == EW_U8)
        return v->t.shape.rank >= 2;
    return v->t.dtype == EW_S32 && v->t.shape.rank == 1 && by_quantised;
}

bool ew_node_is_known(const struct ew_graph *g, const struct ew_node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0 && !g->values[n->out[i]].t.data)
            return false;
    return true;
}

/* depth[v]: counted nodes on the longest path that ends at value v. */
static void count_path(const struct ew_graph *g, const int *uses, int *depth, struct ew_facts *out)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        const bool counts = !(n->op->flags & EW_OP_NO_CDL) && !ew_node_moves_channels(n) &&
                            !folds(g, n, uses) && !is_quantiser(n) && !ew_node_is_known(g, n);
        int longest = 0;
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] >= 0 && depth[n->in[i]] > longest)
                longest = depth[n->in[i]];
        longest += counts;
        out->cdl_nodes += counts;
        out->cdl = ew_max_i64(out->cdl, longest);
        for (int i = 0; i < n->n_out; i++)
            if (n->out[i] >= 0)
                depth[n->out[i]] = longest;
    }
}

ew_err ew_graph_facts(const struct ew_graph *g, struct ew_facts *out)
{
    EW_CLEANUP(ew_free_ptr) int *uses = calloc((size_t)g->n_values + 1, sizeof(*uses));
    EW_CLEANUP(ew_free_ptr) int *depth = calloc((size_t)g->n_values + 1, sizeof(*depth));
    EW_CLEANUP(ew_free_ptr) bool *quantised = calloc((size_t)g->n_values + 1, sizeof(*quantised));
    EW_CHECK(uses && depth && quantised, EW_ERR_MEMORY, "no memory to count graph %s", g->name);
    struct ew_cost cost;
    EW_TRY(ew_graph_cost(g, &cost, NULL));
    *out = (struct ew_facts){.macs = cost.macs,
                             .flops = cost.flops,
                             .flops_thop = 2 * cost.thop_macs,
                             .nodes = g->n_nodes};
    ew_graph_count_uses(g, uses);
    mark_quantised(g, quantised);
    for (int i = 0; i < g->n_values; i++) {
        const struct ew_value *v = &g->values[i];
        if (uses[i] == 0)
            continue; /* a constant that a layout conversion has replaced */
        const bool param = v->kind == EW_VALUE_PARAM || is_quantised(v, quantised[i]);
        if (param)
            out->params += ew_tensor_count(&v->t);
        if (param || v->kind == EW_VALUE_STATE)
            out->weight_bytes += (int64_t)ew_tensor_bytes(&v->t);
    }
    count_path(g, uses, depth, out);
    return EW_OK;
}
