/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over any axes; gradients of sums and means. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/parallel.h"
#include "graph/ops.h"
#include "op/reduce.h"

static const struct {
    const struct ew_op *op;
    enum ew_reduction_kind kind;
    bool mean, root, trains;
} kinds[] = {
    {&ew_op_reduce_sum, EW_REDUCTION_SUM, .trains = true},
    {&ew_op_reduce_mean, EW_REDUCTION_SUM, .mean = true, .trains = true},
    {&ew_op_reduce_max, EW_REDUCTION_MAX},
    {&ew_op_reduce_min, EW_REDUCTION_MIN},
    {&ew_op_reduce_l1, EW_REDUCTION_ABS},
    {&ew_op_reduce_l2, EW_REDUCTION_SQUARES, .root = true},
    {&ew_op_reduce_sum_square, EW_REDUCTION_SQUARES},
};

/* Appends a dimension, or merges it into the last one. */
static void push(int64_t *dims, int64_t *strides, int *n, int64_t dim, int64_t stride, bool joins)
{
    if (!joins) {
        dims[*n] = dim;
        strides[(*n)++] = stride;
        return;
    }
    dims[*n - 1] *= dim;
    strides[*n - 1] = stride;
}

/* Kept and reduced dimensions in memory order, without those of size 1. */
static void axes_of(const struct ew_groups *g, struct ew_reduction_axes *out)
{
    int kept = 0, reduced = 0;
    bool last_kept = false, any = false;
    *out = (struct ew_reduction_axes){.inner = 1, .inner_kept = true};
    while (kept < g->n_kept || reduced < g->n_reduced) {
        const bool take = reduced == g->n_reduced ||
                          (kept < g->n_kept && g->kept_stride[kept] > g->reduced_stride[reduced]);
        const int64_t dim = take ? g->kept_dim[kept] : g->reduced_dim[reduced];
        const int64_t stride = take ? g->kept_stride[kept++] : g->reduced_stride[reduced++];
        if (dim == 1)
            continue;
        const bool joins = any && last_kept == take;
        if (take)
            push(out->kept_dim, out->kept_stride, &out->kept, dim, stride, joins);
        else
            push(out->reduced_dim, out->reduced_stride, &out->reduced, dim, stride, joins);
        last_kept = take;
        any = true;
    }
    if (!any)
        return;
    out->inner_kept = last_kept;
    out->inner = last_kept ? out->kept_dim[--out->kept] : out->reduced_dim[--out->reduced];
}

static bool resolve(const struct ew_call *c, const struct ew_op *op, struct ew_reduction *out,
                    bool *trains)
{
    struct ew_groups g;
    if (c->in[0]->dtype != EW_F32 || ew_groups_of(c, &g) != EW_OK || g.noop || g.count == 0 ||
        g.size == 0)
        return false;
    for (size_t i = 0; i < EW_COUNT(kinds); i++) {
        if (kinds[i].op != op)
            continue;
        *out = (struct ew_reduction){.kind = kinds[i].kind,
                                     .scale = kinds[i].mean ? 1.0f / (float)g.size : 1,
                                     .root = kinds[i].root};
        *trains = kinds[i].trains;
    }
    axes_of(&g, &out->axes);
    return true;
}

static void tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    ew_cpu(c->be)->isa->reduce_run(c->state, begin, end);
}

static void back_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    ew_cpu(c->be)->isa->reduce_back(c->state, begin, end);
}

static ew_err prepare(const struct ew_call *c)
{
    bool trains;
    EW_CHECK(resolve(c, c->op, c->state, &trains), EW_ERR_INTERNAL, "%s: the axes have changed",
             c->name);
    return EW_OK;
}

static ew_err run_forward(const struct ew_call *c)
{
    struct ew_reduction *f = c->state;
    f->x = c->in[0]->data;
    f->y = c->out[0]->data;
    ew_parallel_for(c, ew_cpu(c->be)->isa->reduce_tiles(&f->axes), tiles);
    return EW_OK;
}

static ew_err run_backward(const struct ew_call *c)
{
    struct ew_reduction *f = c->state;
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    f->dy = c->dout[0]->data;
    f->dx = c->din[0]->data;
    f->add = !(c->fresh & 1);
    ew_parallel_for(c, ew_cpu(c->be)->isa->reduce_tiles(&f->axes), back_tiles);
    return EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct ew_reduction f;
    bool trains;
    const bool back = query->phase == EW_PHASE_BACKWARD;
    if (!resolve(query->c, query->op, &f, &trains) || (back && !trains))
        return 0;
    out[0] = (struct ew_kernel){.name = "reduction",
                                .run = back ? run_backward : run_forward,
                                .prepare = prepare,
                                .fresh = back,
                                .state = sizeof(f)};
    return 1;
}

const struct ew_kernel_family ew_offer_reduce = {
    .ops =
        EW_FAMILY_OPS(&ew_op_reduce_sum, &ew_op_reduce_mean, &ew_op_reduce_max, &ew_op_reduce_min,
                      &ew_op_reduce_l1, &ew_op_reduce_l2, &ew_op_reduce_sum_square),
    .offer = offer};
