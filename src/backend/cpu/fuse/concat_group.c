/* SPDX-License-Identifier: Apache-2.0 */
/* Pattern: a concatenation along the channels, and the producers of its inputs.
 *
 * Producers whose kernels support a row stride write directly into the concatenation's output, so
 * neither the concatenation nor the split of its gradient copies anything, and one copy less is
 * kept.  Only the last axis: others are rare in networks. */
#include "backend/cpu/fuse/fuse.h"

#include "op/shape_attr.h"

#define MOST_PARTS 32 /* bits of ew_call.fresh, which must cover all inputs */

static bool is_last_axis(const struct ew_node *n, const struct ew_shape *s)
{
    int axis;
    return ew_shape_axis(((const struct ew_concat_attr *)n->attr)->axis, s->rank, &axis) == EW_OK &&
           axis == s->rank - 1;
}

static bool supports_stride(const struct ew_fuse_search *f, const struct ew_call *c,
                            enum ew_phase phase)
{
    return ew_fuse_preferred(f, c, phase).roles & EW_ROLE_STRIDED_OUTPUT;
}

/* True if `value` can lie in the output of `node`.  Both must be kept for the backward pass: a
 * recomputed value has memory of its own. */
static ew_err fits(struct ew_fuse_search *f, int node, int value, bool *out)
{
    const struct ew_fuse_query *q = f->query;
    const int whole = q->g->nodes[node].out[0],
              from = value < 0 ? -1 : q->g->values[value].producer;
    *out = false;
    if (from < 0 || !q->needed[from] || q->g->nodes[from].out[0] != value ||
        ew_fuse_is_known(f, value) || ew_fuse_only_reader(f, value) != node || !q->keep[value] ||
        !q->keep[whole])
        return EW_OK;
    const struct ew_node *n = &q->g->nodes[from];
    if (n->n_in > 0 && n->in[0] >= 0 && f->input_norm[n->in[0]] >= 0)
        return EW_OK; /* kernels with a fused input norm support no row stride */
    struct ew_call c;
    EW_TRY(ew_fuse_call(f, from, &c));
    bool strided = supports_stride(f, &c, EW_PHASE_FORWARD) &&
                   (!q->train || supports_stride(f, &c, EW_PHASE_BACKWARD));
    /* Masking the gradient of a strided part in a pass of its own would be slower than the copy. */
    if (strided && q->train && f->relu[value])
        EW_TRY(ew_fuse_will_mask(f, whole, &strided));
    *out = strided;
    return EW_OK;
}

static ew_err concat(struct ew_fuse_search *f, int node)
{
    const struct ew_node *n = &f->query->g->nodes[node];
    const int phases = f->query->train ? 2 : 1;
    struct ew_group_step *s;
    EW_TRY(ew_group_add(f->list, "concatenation", phases * n->n_in, &s));
    for (int i = 0; i < n->n_in; i++)
        for (int k = 0; k < phases; k++)
            *s++ = (struct ew_group_step){.node = f->query->g->values[n->in[i]].producer,
                                          .phase = k == 0 ? EW_PHASE_FORWARD : EW_PHASE_BACKWARD,
                                          .role = EW_ROLE_STRIDED_OUTPUT};
    f->list->groups[f->list->n - 1].decided = true;
    f->list->groups[f->list->n - 1].concat = node;
    return EW_OK;
}

ew_err ew_fuse_concats(struct ew_fuse_search *f)
{
    const struct ew_fuse_query *q = f->query;
    for (int k = 0; k < q->g->n_nodes; k++) {
        const struct ew_node *n = &q->g->nodes[k];
        if (!q->needed[k] || !(n->op->flags & EW_OP_CONCAT) || n->n_in > MOST_PARTS ||
            q->g->values[n->out[0]].t.dtype != EW_F32 ||
            !is_last_axis(n, &q->g->values[n->out[0]].t.shape))
            continue;
        bool all = true; /* with one copied input, the whole would live longer for nothing */
        for (int i = 0; i < n->n_in && all; i++)
            EW_TRY(fits(f, k, n->in[i], &all));
        if (all)
            EW_TRY(concat(f, k));
    }
    return EW_OK;
}
