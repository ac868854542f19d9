/* SPDX-License-Identifier: Apache-2.0 */
/* Pattern: a ReLU, and the backward of the nodes that read its output.
 *
 * The gradient of a ReLU's output counts only where the output is positive.  So the last step that
 * adds to this gradient can mask it as it writes, by the value that it reads anyway; the ReLU's own
 * backward, another pass over the tensor, is not needed.  Max pools, dropout and concatenations of
 * such values are transparent: their outputs are positive only where the input is, and gradients go
 * only there. */
#include "backend/cpu/fuse/fuse.h"

/* Inputs that pass through a transparent node; 0: the node is not transparent. */
static int passed_inputs(const struct ew_node *n)
{
    if (!(n->op->flags & EW_OP_ZEROS_PASS))
        return 0;
    return n->op->flags & EW_OP_CONCAT ? n->n_in : 1;
}

static bool makes_relu(const struct ew_node *n)
{
    return n->op->makes_relu && n->op->makes_relu(n->attr);
}

static ew_err find_relus(struct ew_fuse_search *f)
{
    const struct ew_fuse_query *q = f->query;
    for (int k = 0; k < q->g->n_nodes; k++) {
        const struct ew_node *n = &q->g->nodes[k];
        if (!q->needed[k] || q->on_host[k] || n->n_out != 1)
            continue;
        const int inputs = passed_inputs(n);
        bool relu = inputs > 0;
        for (int i = 0; i < inputs && relu; i++)
            relu = n->in[i] >= 0 && f->relu[n->in[i]] && ew_fuse_only_reader(f, n->in[i]) == k;
        if (makes_relu(n)) {
            struct ew_kernel kernel;
            EW_TRY(ew_fuse_kernel(f, k, EW_PHASE_BACKWARD, &kernel));
            relu = kernel.roles & EW_ROLE_RELU_MASKED;
        }
        f->relu[n->out[0]] = relu;
    }
    return EW_OK;
}

ew_err ew_fuse_will_mask(struct ew_fuse_search *f, int value, bool *out)
{
    const struct ew_graph *g = f->query->g;
    *out = false;
    while (f->relu[value]) {
        const int reader = f->query->uses[value].first;
        if (reader < 0)
            break;
        if (passed_inputs(&g->nodes[reader]) > 0) {
            value = g->nodes[reader].out[0];
            continue;
        }
        struct ew_kernel kernel;
        EW_TRY(ew_fuse_kernel(f, reader, EW_PHASE_BACKWARD, &kernel));
        *out = (kernel.roles & EW_ROLE_RELU_MASK) && g->nodes[reader].in[0] == value;
        break;
    }
    return EW_OK;
}

/* True if the node's backward is the last to add to the gradient of in[0], the output of a ReLU. */
static bool completes(const struct ew_fuse_search *f, int node)
{
    const struct ew_node *n = &f->query->g->nodes[node];
    const int value = n->n_in > 0 ? n->in[0] : -1;
    if (!f->query->needed[node] || value < 0 || !f->relu[value] || !f->query->needs_grad[value] ||
        f->query->uses[value].first != node)
        return false;
    for (int i = 1; i < n->n_in; i++)
        if (n->in[i] == value)
            return false;
    return true;
}

/* Fills f->nodes with the nodes whose ReLUs produce the value, through transparent nodes; returns
 * how many. */
static int find_relu_nodes(struct ew_fuse_search *f, int value)
{
    const struct ew_graph *g = f->query->g;
    int n = 1, producers = 0;
    f->nodes[0] = g->values[value].producer;
    for (int i = 0; i < n; i++) {
        const struct ew_node *node = &g->nodes[f->nodes[i]];
        for (int k = 0; k < passed_inputs(node); k++)
            f->nodes[n++] = g->values[node->in[k]].producer;
    }
    for (int i = 0; i < n; i++)
        if (passed_inputs(&g->nodes[f->nodes[i]]) == 0)
            f->nodes[producers++] = f->nodes[i];
    return producers;
}

ew_err ew_fuse_relu_grads(struct ew_fuse_search *f)
{
    EW_TRY(find_relus(f));
    for (int k = 0; k < f->query->g->n_nodes; k++) {
        struct ew_group_step *s;
        if (!completes(f, k))
            continue;
        const int producers = find_relu_nodes(f, f->query->g->nodes[k].in[0]);
        EW_TRY(ew_group_add(f->list, "ReLU's gradient", 1 + producers, &s));
        s[0] = (struct ew_group_step){
            .node = k, .phase = EW_PHASE_BACKWARD, .role = EW_ROLE_RELU_MASK};
        for (int i = 0; i < producers; i++)
            s[1 + i] = (struct ew_group_step){.node = f->nodes[i],
                                              .phase = EW_PHASE_BACKWARD,
                                              .role = EW_ROLE_RELU_MASKED,
                                              .unread = EW_SAVE_OUT};
    }
    return EW_OK;
}
