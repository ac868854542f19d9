/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are made where the concatenation that reads them would copy them to, and gradients
 * that are read where the whole one lies.
 *
 * A kernel that can leave room between the rows of its output writes into the whole from the
 * beginning; then joining the parts, and dividing their gradient, is no work at all, and there is
 * one copy less to keep.  Concatenations along other axes than the last are rare in networks. */
#include <string.h>

#include "op/shape_attr.h"
#include "plan/plan_impl.h"

#define MOST_PARTS 32 /* bits of ew_call.fresh: none of their gradients is cleared first */

static bool is_last_axis(const struct ew_node *n, const struct ew_shape *s)
{
    int axis;
    return ew_shape_axis(((const struct ew_concat_attr *)n->attr)->axis, s->rank, &axis) == EW_OK &&
           axis == s->rank - 1;
}

/* True where `value` can lie in the output of `node`.  What is kept of the one must be kept of the
 * other, and what is computed again has memory of its own. */
static ew_err fits(struct ew_plan *p, int node, int value, bool *out)
{
    const int whole = p->g->nodes[node].out[0],
              from = value < 0 ? -1 : p->g->values[value].producer;
    *out = false;
    if (from < 0 || !p->needed[from] || p->g->nodes[from].out[0] != value ||
        ew_plan_has_data(p, value) || ew_plan_only_reader(p, value) != node || !p->keep[value] ||
        !p->keep[whole])
        return EW_OK;
    const struct ew_node *n = &p->g->nodes[from];
    if (n->n_in > 0 && n->in[0] >= 0 && p->deferred[n->in[0]] >= 0)
        return EW_OK; /* kernels that make their input do not leave room as well */
    struct ew_call c;
    EW_TRY(ew_plan_shape_call(p, from, &c));
    c.train = p->opts.mode == EW_PLAN_TRAIN;
    bool joins = ew_plan_preferred(p, &c, EW_PHASE_FORWARD).steps &&
                 (!c.train || ew_plan_preferred(p, &c, EW_PHASE_BACKWARD).steps);
    /* Clearing a part's gradient by itself, row by row, would take longer than copying it. */
    if (joins && c.train && p->relu[value])
        EW_TRY(ew_plan_will_mask(p, whole, &joins));
    *out = joins;
    return EW_OK;
}

ew_err ew_plan_join(struct ew_plan *p)
{
    for (int k = 0; k < p->g->n_nodes; k++) {
        const struct ew_node *n = &p->g->nodes[k];
        if (!p->needed[k] || !(n->op->flags & EW_OP_JOIN) || n->n_in > MOST_PARTS ||
            p->g->values[n->out[0]].t.dtype != EW_F32 ||
            !is_last_axis(n, &p->g->values[n->out[0]].t.shape))
            continue;
        bool all = true; /* a part that has to be copied would keep the whole longer for nothing */
        for (int i = 0; i < n->n_in && all; i++)
            EW_TRY(fits(p, k, n->in[i], &all));
        for (int i = 0; i < n->n_in && all; i++)
            p->joined[n->in[i]] = k;
    }
    return EW_OK;
}

static int64_t channels(const struct ew_plan *p, int value)
{
    const struct ew_shape *s = &p->g->values[value].t.shape;
    return s->dim[s->rank - 1];
}

int64_t ew_plan_out_step(const struct ew_plan *p, int value)
{
    return value >= 0 && p->joined[value] >= 0 ? channels(p, p->g->nodes[p->joined[value]].out[0])
                                               : 0;
}

ew_err ew_plan_place_part(struct ew_plan *p, int value, struct ew_slot *part, struct ew_slot *whole)
{
    const struct ew_node *n = &p->g->nodes[p->joined[value]];
    if (whole->first > part->first)
        whole->first = part->first;
    EW_TRY(ew_plan_own_buffer(p, whole));
    part->buffer = whole->buffer;
    for (int i = 0; n->in[i] != value; i++)
        part->at += (size_t)channels(p, n->in[i]) * sizeof(float);
    struct ew_buffer *b = &p->buffers[part->buffer];
    b->last = part->last > b->last ? part->last : b->last;
    return EW_OK;
}
