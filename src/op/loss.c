/* SPDX-License-Identifier: Apache-2.0 */
/* Common part of the losses over class labels. */
#include "op/loss.h"

#include "op/axis.h"

const char *const ew_loss_reductions[] = {"mean", "sum", "none", NULL};

static ew_err check_shapes(const struct ew_call *c, int axis)
{
    const struct ew_shape *x = &c->in[0]->shape, *labels = &c->in[1]->shape;
    const struct ew_tensor *weights = ew_call_in(c, 2);
    char tx[EW_SHAPE_TEXT], tl[EW_SHAPE_TEXT];
    bool same = labels->rank == x->rank - 1;
    for (int i = 0; same && i < labels->rank; i++)
        same = labels->dim[i] == x->dim[i < axis ? i : i + 1];
    EW_CHECK(same, EW_ERR_SHAPE, "labels are %s for scores of %s", ew_shape_text(labels, tl),
             ew_shape_text(x, tx));
    EW_CHECK(!weights || ew_tensor_count(weights) == x->dim[axis], EW_ERR_SHAPE,
             "there are %lld weights for %lld classes",
             weights ? (long long)ew_tensor_count(weights) : 0, (long long)x->dim[axis]);
    return EW_OK;
}

ew_err ew_loss_infer(const struct ew_call *c)
{
    const struct ew_loss_attr *a = c->attr;
    int axis;
    EW_TRY(ew_types_check(c, 0, EW_TYPES_FLOAT));
    EW_TRY(ew_types_check(c, 1, EW_TYPES_INDEX));
    EW_TRY(ew_types_same(c, 2));
    EW_TRY(ew_shape_axis(a->axis, c->in[0]->shape.rank, &axis));
    EW_TRY(check_shapes(c, axis));
    c->out[0]->dtype = c->in[0]->dtype;
    c->out[0]->shape =
        a->reduction == EW_LOSS_NONE ? c->in[1]->shape : (struct ew_shape){.rank = 0};
    return EW_OK;
}

struct ew_lanes ew_loss_lanes(const struct ew_call *c)
{
    const struct ew_loss_attr *a = c->attr;
    const struct ew_shape *s = &c->in[0]->shape;
    return ew_lanes_of(s, ew_axis_of(a->axis, s->rank));
}

ew_err ew_loss_label(const struct ew_call *c, int64_t sample, int64_t classes, int64_t *out)
{
    const struct ew_loss_attr *a = c->attr;
    const int64_t label = ew_tensor_get_int(c->in[1], sample);
    *out = -1;
    if (label == a->ignore_index && a->ignore_index != EW_LOSS_NO_IGNORE)
        return EW_OK;
    EW_CHECK(label >= 0 && label < classes, EW_ERR_ARG,
             "%s: label %lld of sample %lld is outside %lld classes", c->name, (long long)label,
             (long long)sample, (long long)classes);
    *out = label;
    return EW_OK;
}

double ew_loss_weight(const struct ew_call *c, int64_t label)
{
    const struct ew_tensor *w = ew_call_in(c, 2);
    return w ? ew_tensor_get(w, label) : 1;
}

ew_err ew_loss_divisor(const struct ew_call *c, const struct ew_lanes *l, double *out)
{
    const struct ew_loss_attr *a = c->attr;
    *out = 1;
    if (a->reduction != EW_LOSS_MEAN)
        return EW_OK;
    double sum = 0;
    for (int64_t i = 0; i < ew_lanes_count(l); i++) {
        int64_t label;
        EW_TRY(ew_loss_label(c, i, l->n, &label));
        sum += label < 0 ? 0 : ew_loss_weight(c, label);
    }
    *out = sum;
    return EW_OK;
}

double ew_loss_gradient(const struct ew_call *c, int64_t sample, double divisor)
{
    const struct ew_loss_attr *a = c->attr;
    if (!c->dout[0])
        return 0;
    return ew_tensor_get(c->dout[0], a->reduction == EW_LOSS_NONE ? sample : 0) / divisor;
}

ew_err ew_loss_permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    const struct ew_node *n = &g->nodes[node];
    struct ew_loss_attr *a = n->attr;
    const int rank = g->values[n->in[0]].t.shape.rank;
    int axis;
    EW_TRY(ew_shape_axis(a->axis, rank, &axis));
    /* the labels are not permuted, so the other axes must keep their order */
    for (int i = 0, last = -1; i < rank; i++) {
        if (perm[i] == axis)
            continue;
        if (perm[i] < last)
            return EW_ERR_UNSUPPORTED;
        last = perm[i];
    }
    if (n->n_out > 1 && n->out[1] >= 0)
        return EW_ERR_UNSUPPORTED; /* not of the loss's rank */
    a->axis = ew_axis_moved(axis, perm, rank);
    for (int i = 0; i < EW_MAX_RANK; i++)
        out_perm[i] = i;
    return EW_OK;
}

ew_err ew_loss_export(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_loss_attr *a = g->nodes[node].attr;
    EW_CHECK(a->axis == 1 && a->smoothing <= 0, EW_ERR_UNSUPPORTED, "%s: %s has no ONNX form",
             g->nodes[node].name,
             a->axis == 1 ? "label smoothing" : "an axis of classes other than 1");
    if (a->ignore_index == EW_LOSS_NO_IGNORE)
        ew_onnx_drop(n, "ignore_index");
    return EW_OK;
}
