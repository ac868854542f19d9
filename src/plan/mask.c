/* SPDX-License-Identifier: Apache-2.0 */
/* Who clears gradients of what relus did not let through.
 *
 * A relu's output is positive where its gradient counts.  So whoever completes that gradient can
 * clear it as it writes it, by the value that it reads anyway, where the relu's own backward would
 * read and write all of it once more.  Max pools and dropout hand zeros on: their outputs are
 * positive only where they come from a positive input, and gradients go there alone.  So do
 * concatenations of nothing but such values. */
#include "plan/plan_impl.h"

/* How many of a node's inputs are handed on so; 0: it is none of those. */
static int handed_on(const struct ew_node *n)
{
    if (!(n->op->flags & EW_OP_ZEROS_PASS))
        return 0;
    return n->op->flags & EW_OP_JOIN ? n->n_in : 1;
}

static bool makes_relu(const struct ew_node *n)
{
    return n->op->makes_relu && n->op->makes_relu(n->attr);
}

/* The kernel that rules prefer for the node's backward. */
static ew_err backward_kernel(struct ew_plan *p, int node, struct ew_kernel *out)
{
    struct ew_call c;
    EW_TRY(ew_plan_shape_call(p, node, &c));
    *out = ew_plan_preferred(p, &c, EW_PHASE_BACKWARD);
    return EW_OK;
}

ew_err ew_plan_find_relus(struct ew_plan *p)
{
    for (int k = 0; k < p->g->n_nodes; k++) {
        const struct ew_node *n = &p->g->nodes[k];
        if (!p->needed[k] || p->on_host[k] || n->n_out != 1)
            continue;
        const int inputs = handed_on(n);
        bool relu = inputs > 0;
        for (int i = 0; i < inputs && relu; i++)
            relu = n->in[i] >= 0 && p->relu[n->in[i]] && ew_plan_only_reader(p, n->in[i]) == k;
        if (makes_relu(n)) {
            struct ew_kernel kernel;
            EW_TRY(backward_kernel(p, k, &kernel));
            relu = kernel.masked;
        }
        p->relu[n->out[0]] = relu;
    }
    return EW_OK;
}

/* The first needed node that reads the value, whose backward completes its gradient; -1: none. */
static int first_reader(const struct ew_plan *p, int value)
{
    return p->reading[value].first;
}

bool ew_plan_masks(const struct ew_plan *p, int node)
{
    const struct ew_node *n = &p->g->nodes[node];
    const int value = n->n_in > 0 ? n->in[0] : -1;
    if (value < 0 || !p->relu[value] || !p->needs_grad[value] || first_reader(p, value) != node)
        return false;
    for (int i = 1; i < n->n_in; i++)
        if (n->in[i] == value)
            return false;
    return true;
}

ew_err ew_plan_will_mask(struct ew_plan *p, int value, bool *out)
{
    *out = false;
    while (p->relu[value]) {
        const int reader = first_reader(p, value);
        if (reader < 0)
            break;
        if (handed_on(&p->g->nodes[reader]) > 0) {
            value = p->g->nodes[reader].out[0];
            continue;
        }
        struct ew_kernel kernel;
        EW_TRY(backward_kernel(p, reader, &kernel));
        *out = kernel.masks && p->g->nodes[reader].in[0] == value;
        break;
    }
    return EW_OK;
}

void ew_plan_note_masks(struct ew_plan *p, int node, bool masks)
{
    const struct ew_node *n = &p->g->nodes[node];
    if (masks)
        p->masked[n->in[0]] = true;
    if (n->n_out == 1 && n->out[0] >= 0 && p->masked[n->out[0]])
        for (int i = 0; i < handed_on(n); i++)
            p->masked[n->in[i]] = true;
}
