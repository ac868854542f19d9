/* SPDX-License-Identifier: Apache-2.0 */
/* Group, instance and layer norm on CUDA devices. */
#include "backend/cuda/cuda_backend.h"
#include "graph/ops.h"
#include "op/norm.h"

enum { X, SCALE, BIAS };

/* The groups whose statistics are shared, by operator. */
static bool groups_of(const struct ew_call *c, struct ew_cuda_group_norm *p)
{
    const struct ew_shape *x = &c->in[X]->shape;
    int64_t inner = 1, run;
    if (c->op == &ew_op_layer_norm) {
        const struct ew_layer_norm_attr *a = c->attr;
        int axis;
        if (ew_shape_axis(a->axis, x->rank, &axis) != EW_OK)
            return false;
        p->outer = ew_shape_span(x, 0, axis);
        p->rows = 1;
        p->eps = (float)a->eps;
        run = ew_shape_span(x, axis, x->rank);
    } else {
        const struct ew_group_norm_attr *a = c->attr;
        inner = c->op == &ew_op_instance_norm ? x->dim[x->rank - 1] : a->groups;
        p->outer = x->dim[0];
        p->rows = ew_shape_span(x, 1, x->rank - 1);
        p->eps = (float)a->eps;
        run = x->dim[x->rank - 1] / inner;
    }
    p->inner = (int)inner;
    p->run = (int)run;
    return p->outer * inner > 0 && p->outer * inner < INT32_MAX && p->rows * run > 0 &&
           inner * run < INT32_MAX;
}

static struct ew_cuda_group_norm norm_of(const struct ew_call *c)
{
    struct ew_cuda_group_norm p = {.type = ew_cuda_storage(c->in[X]),
                                   .x = c->in[X]->data,
                                   .scale = c->in[SCALE]->data,
                                   .bias = ew_cuda_data(ew_call_in(c, BIAS)),
                                   .kept = c->aux,
                                   .scratch = c->scratch};
    groups_of(c, &p);
    return p;
}

static ew_err run_norm(const struct ew_call *c)
{
    struct ew_cuda_group_norm p = norm_of(c);
    p.y = c->out[0]->data;
    EW_CUDA_LAUNCH(c, group_norm, &p);
    return EW_OK;
}

static ew_err back_norm(const struct ew_call *c)
{
    struct ew_cuda_group_norm p = norm_of(c);
    p.dy = c->dout[0]->data;
    p.dx = ew_cuda_data(c->din[X]);
    p.dscale = ew_cuda_data(c->din[SCALE]);
    p.dbias = c->n_in > BIAS ? ew_cuda_data(c->din[BIAS]) : NULL;
    p.add_dx = ew_cuda_adds(c, X);
    p.add_dscale = ew_cuda_adds(c, SCALE);
    p.add_dbias = ew_cuda_adds(c, BIAS);
    EW_CUDA_LAUNCH(c, group_norm_back, &p);
    return EW_OK;
}

int ew_cuda_offer_group_norm(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    const bool back = query->phase == EW_PHASE_BACKWARD;
    struct ew_cuda_group_norm p = {0};
    if (ew_cuda_query_type(query, 1 << SCALE | 1 << BIAS, 0) < 0 || ew_call_out(c, 1) ||
        ew_call_out(c, 2) || !groups_of(c, &p))
        return 0;
    for (int i = SCALE; i <= BIAS; i++)
        if (ew_call_in(c, i) && ew_tensor_count(c->in[i]) != (int64_t)p.inner * p.run)
            return 0; /* scale per group, or a single one */
    const size_t scratch = ew_cuda_reduce_scratch(1, p.outer * p.rows, (int64_t)p.inner * p.run, 2);
    return ew_cuda_one(out, query->op->name, back ? back_norm : run_norm, back ? scratch : 0);
}
