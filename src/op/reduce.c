/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: groups of elements, and the common loops. */
#include "op/reduce.h"

#include <string.h>

#include "op/axis.h"
#include "op/pointwise.h"

const struct ew_field ew_reduce_attrs[] = {
    {.name = "keepdims",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct ew_reduce_attr, keepdims),
     .def = "true",
     .help = "reduced axes stay, with size 1"},
    {.name = "noop_with_empty_axes",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct ew_reduce_attr, noop_with_empty_axes),
     .help = "without axes each element is alone, instead of all being reduced"},
    EW_FIELD_END,
};

/* Mask of the reduced axes.  *noop: none, by noop_with_empty_axes. */
static ew_err reduced_axes(const struct ew_reduce_attr *a, const struct ew_tensor *axes, int rank,
                           unsigned *mask, bool *noop)
{
    struct ew_ints list = {0};
    if (axes)
        EW_TRY(ew_axes_read(axes, rank, 0, &list));
    *noop = list.n == 0 && a->noop_with_empty_axes;
    *mask = list.n == 0 && !*noop ? (1u << rank) - 1 : 0;
    for (int i = 0; i < list.n; i++)
        *mask |= 1u << list.v[i];
    return EW_OK;
}

ew_err ew_groups_of(const struct ew_call *c, struct ew_groups *out)
{
    const struct ew_shape *s = &c->in[0]->shape;
    int64_t stride[EW_MAX_RANK];
    unsigned mask;
    *out = (struct ew_groups){.count = 1, .size = 1};
    EW_TRY(reduced_axes(c->attr, ew_call_in(c, 1), s->rank, &mask, &out->noop));
    ew_shape_strides(s, s, stride);
    for (int i = 0; i < s->rank; i++) {
        if (mask >> i & 1) {
            out->reduced_dim[out->n_reduced] = s->dim[i];
            out->reduced_stride[out->n_reduced++] = stride[i];
            out->size *= s->dim[i];
        } else {
            out->kept_dim[out->n_kept] = s->dim[i];
            out->kept_stride[out->n_kept++] = stride[i];
            out->count *= s->dim[i];
        }
    }
    return EW_OK;
}

static ew_err reduce_infer(const struct ew_call *c, unsigned types)
{
    const struct ew_reduce_attr *a = c->attr;
    const struct ew_shape *s = &c->in[0]->shape;
    unsigned mask;
    bool noop;
    EW_TRY(ew_types_check(c, 0, types));
    EW_TRY(ew_types_check(c, 1, EW_TYPES_INDEX));
    EW_TRY(reduced_axes(a, ew_call_in(c, 1), s->rank, &mask, &noop));
    struct ew_shape *out = &c->out[0]->shape;
    out->rank = 0;
    for (int i = 0; i < s->rank; i++)
        if (a->keepdims || !(mask >> i & 1))
            out->dim[out->rank++] = mask >> i & 1 ? 1 : s->dim[i];
    c->out[0]->dtype = c->in[0]->dtype;
    return EW_OK;
}

ew_err ew_reduce_infer(const struct ew_call *c)
{
    return reduce_infer(c, EW_TYPES_NUMBER);
}

ew_err ew_reduce_infer_order(const struct ew_call *c)
{
    return reduce_infer(c, EW_TYPES_ALL);
}

void ew_reduce_cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += ew_tensor_count(c->in[0]);
}

/* ---- Elements of a group ---- */

/* Offsets of elements [at, at + n) of the group, ascending. */
static void positions(const struct ew_groups *r, int64_t group, int64_t at, int64_t n, int64_t *pos)
{
    int64_t base = 0, index[EW_MAX_RANK] = {0};
    for (int i = r->n_kept - 1; i >= 0; i--) {
        base += group % r->kept_dim[i] * r->kept_stride[i];
        group /= r->kept_dim[i];
    }
    for (int i = r->n_reduced - 1; i >= 0; i--) {
        index[i] = at % r->reduced_dim[i];
        at /= r->reduced_dim[i];
        base += index[i] * r->reduced_stride[i];
    }
    for (int64_t k = 0; k < n; k++) {
        pos[k] = base;
        for (int i = r->n_reduced - 1; i >= 0; i--) {
            base += r->reduced_stride[i];
            if (++index[i] < r->reduced_dim[i])
                break;
            base -= index[i] * r->reduced_stride[i];
            index[i] = 0;
        }
    }
}

void ew_group_load(const struct ew_groups *r, const struct ew_tensor *t, int64_t group, int64_t at,
                   int64_t n, double *v)
{
    int64_t pos[EW_CHUNK];
    positions(r, group, at, n, pos);
    if (pos[n - 1] - pos[0] == n - 1)
        ew_tensor_load(t, pos[0], n, v);
    else
        for (int64_t k = 0; k < n; k++)
            ew_tensor_load(t, pos[k], 1, v + k);
}

void ew_group_accumulate(const struct ew_groups *r, struct ew_tensor *t, int64_t group, int64_t at,
                         int64_t n, const double *v)
{
    int64_t pos[EW_CHUNK];
    positions(r, group, at, n, pos);
    if (pos[n - 1] - pos[0] == n - 1)
        ew_tensor_accumulate(t, pos[0], n, v);
    else
        for (int64_t k = 0; k < n; k++)
            ew_tensor_accumulate(t, pos[k], 1, v + k);
}

/* ---- Forward and backward ---- */

static void fold_int(const struct ew_groups *r, const struct ew_call *c, const struct ew_fold *f)
{
    const bool wide = f->step_u64 && c->in[0]->dtype == EW_U64;
    int64_t pos[EW_CHUNK];
    for (int64_t group = 0; group < r->count; group++) {
        int64_t acc = wide ? 0 : f->start_int;
        for (int64_t at = 0; at < r->size; at += EW_CHUNK) {
            const int64_t n = ew_min_i64(EW_CHUNK, r->size - at);
            positions(r, group, at, n, pos);
            for (int64_t k = 0; k < n; k++) {
                const int64_t x = ew_tensor_get_int(c->in[0], pos[k]);
                if (wide)
                    acc = at + k ? (int64_t)f->step_u64((uint64_t)acc, (uint64_t)x) : x;
                else
                    acc = f->step_int(acc, x);
            }
        }
        ew_tensor_store_int(c->out[0], group, 1, &acc);
    }
}

static void fold_float(const struct ew_groups *r, const struct ew_call *c, const struct ew_fold *f)
{
    double v[EW_CHUNK];
    for (int64_t group = 0; group < r->count; group++) {
        double acc = f->start;
        for (int64_t at = 0; at < r->size; at += EW_CHUNK) {
            const int64_t n = ew_min_i64(EW_CHUNK, r->size - at);
            ew_group_load(r, c->in[0], group, at, n, v);
            for (int64_t k = 0; k < n; k++)
                acc = f->step(acc, v[k]);
        }
        if (f->end)
            acc = f->end(acc, r->size);
        ew_tensor_store(c->out[0], group, 1, &acc);
    }
}

ew_err ew_reduce_forward(const struct ew_call *c, const struct ew_fold *f)
{
    struct ew_groups r;
    EW_TRY(ew_groups_of(c, &r));
    if (f->step_int && !ew_dtype_is_float(c->in[0]->dtype))
        fold_int(&r, c, f);
    else
        fold_float(&r, c, f);
    return EW_OK;
}

ew_err ew_reduce_backward(const struct ew_call *c, double (*df)(double x, double y, int64_t n))
{
    struct ew_groups r;
    double v[EW_CHUNK] = {0};
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    EW_TRY(ew_groups_of(c, &r));
    for (int64_t group = 0; group < r.count; group++) {
        const double g = ew_tensor_get(c->dout[0], group);
        const double y = c->out[0]->data ? ew_tensor_get(c->out[0], group) : 0;
        for (int64_t at = 0; at < r.size; at += EW_CHUNK) {
            const int64_t n = ew_min_i64(EW_CHUNK, r.size - at);
            if (c->in[0]->data)
                ew_group_load(&r, c->in[0], group, at, n, v);
            for (int64_t k = 0; k < n; k++)
                v[k] = g * df(c->in[0]->data ? v[k] : 0, y, r.size);
            ew_group_accumulate(&r, c->din[0], group, at, n, v);
        }
    }
    return EW_OK;
}

/* Replaces the elements by 1 where they are y, else by 0; returns the number of ones. */
static int64_t mark_equal(double *v, int64_t n, double y)
{
    int64_t equal = 0;
    for (int64_t k = 0; k < n; k++) {
        const bool same = v[k] >= y && v[k] <= y;
        equal += same;
        v[k] = same;
    }
    return equal;
}

ew_err ew_reduce_backward_extreme(const struct ew_call *c)
{
    struct ew_groups r;
    double v[EW_CHUNK];
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    EW_TRY(ew_groups_of(c, &r));
    for (int64_t group = 0; group < r.count; group++) {
        const double y = ew_tensor_get(c->out[0], group);
        int64_t equal = 0;
        for (int64_t at = 0; at < r.size; at += EW_CHUNK) {
            const int64_t n = ew_min_i64(EW_CHUNK, r.size - at);
            ew_group_load(&r, c->in[0], group, at, n, v);
            equal += mark_equal(v, n, y);
        }
        const double g = ew_tensor_get(c->dout[0], group) / (double)ew_max_i64(equal, 1);
        for (int64_t at = 0; at < r.size; at += EW_CHUNK) {
            const int64_t n = ew_min_i64(EW_CHUNK, r.size - at);
            ew_group_load(&r, c->in[0], group, at, n, v);
            mark_equal(v, n, y);
            for (int64_t k = 0; k < n; k++)
                v[k] *= g;
            ew_group_accumulate(&r, c->din[0], group, at, n, v);
        }
    }
    return EW_OK;
}

/* ---- Layout ---- */

void ew_reduce_out_perm(unsigned mask, int rank, const int *perm, int *out_perm)
{
    int n = 0, place[EW_MAX_RANK] = {0};
    for (int i = 0; i < rank; i++) /* old axis to old output axis */
        place[i] = n += !(mask >> i & 1);
    int out[EW_MAX_RANK] = {0};
    n = 0;
    for (int i = 0; i < rank; i++)
        if (!(mask >> perm[i] & 1))
            out[n++] = place[perm[i]] - 1;
    memcpy(out_perm, out, (size_t)n * sizeof(int));
}

ew_err ew_reduce_permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    const struct ew_node *n = &g->nodes[node];
    const struct ew_reduce_attr *a = n->attr;
    const int rank = g->values[n->in[0]].t.shape.rank;
    const struct ew_tensor *axes = n->n_in > 1 && n->in[1] >= 0 ? &g->values[n->in[1]].t : NULL;
    unsigned mask;
    bool noop;
    EW_TRY(reduced_axes(a, axes, rank, &mask, &noop));
    if (axes && mask) {
        int64_t moved[EW_MAX_RANK];
        int count = 0;
        for (int i = 0; i < rank; i++)
            if (mask >> perm[i] & 1)
                moved[count++] = i;
        EW_TRY(ew_graph_const_ints(g, g->values[n->in[1]].name, moved, count, &n->in[1]));
    }
    if (!a->keepdims)
        ew_reduce_out_perm(mask, rank, perm, out_perm);
    return EW_OK;
}

/* ---- ONNX ---- */

ew_err ew_reduce_import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    static const char *const ignore[] = {"axes", NULL};
    const struct ew_op *op = ew_op_find_onnx(n->type, n->domain);
    struct ew_reduce_attr a;
    EW_TRY(ew_onnx_fill(op, n, ignore, &a));
    int in[2] = {n->n_in > 0 ? n->in[0] : -1, -1};
    EW_TRY(ew_onnx_input_or_attr(g, n, 1, "axes", &in[1]));
    const struct ew_onnx_node own = ew_onnx_with_inputs(n, in, 2);
    return ew_onnx_import_default(g, op, &own, &a, out);
}

ew_err ew_reduce_export(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_node *from = &g->nodes[node];
    const struct ew_reduce_attr *a = from->attr;
    if (n->opset >= (strcmp(n->type, "ReduceSum") == 0 ? 13 : 18))
        return EW_OK;
    ew_onnx_drop(n, "noop_with_empty_axes");
    n->n_in = 1;
    struct ew_ints axes = {0};
    if (from->n_in > 1 && from->in[1] >= 0)
        EW_TRY(ew_tensor_ints(&g->values[from->in[1]].t, "axes", &axes));
    if (axes.n)
        return ew_onnx_set_ints(n, "axes", axes.v, axes.n);
    if (a->noop_with_empty_axes) {
        /* Reductions that change groups of one element (|x|, x^2, log x), which opsets before 18
         * cannot express. */
        static const char *const change[] = {"ReduceL1", "ReduceL2", "ReduceLogSum",
                                             "ReduceSumSquare"};
        for (size_t i = 0; i < EW_COUNT(change); i++)
            if (strcmp(n->type, change[i]) == 0) {
                n->opset = 18;
                return EW_OK;
            }
        n->type = "Identity";
        ew_onnx_drop(n, "keepdims");
    }
    return EW_OK;
}
