/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norm over the dimensions from an axis on, with a scale and an optional bias for each
 * element. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/parallel.h"
#include "graph/ops.h"
#include "op/norm.h"

static bool resolve(const struct ew_call *c, struct ew_layer_norm *out)
{
    const struct ew_layer_norm_attr *a = c->attr;
    const struct ew_shape *x = &c->in[0]->shape;
    int axis;
    if (c->in[0]->dtype != EW_F32 || ew_shape_axis(a->axis, x->rank, &axis) != EW_OK)
        return false;
    *out = (struct ew_layer_norm){.rows = ew_shape_span(x, 0, axis),
                                  .n = ew_shape_span(x, axis, x->rank),
                                  .eps = (float)a->eps};
    if (out->rows == 0 || out->n == 0)
        return false;
    for (int i = 1; i < c->n_in; i++)
        if (c->in[i] && (c->in[i]->dtype != EW_F32 || ew_tensor_count(c->in[i]) != out->n))
            return false;
    for (int i = 1; i < c->n_out; i++)
        if (c->out[i])
            return false;
    return true;
}

/* aux is [2][rows]: mean, 1 / std. */
static struct ew_layer_norm of_call(const struct ew_call *c)
{
    struct ew_layer_norm l;
    resolve(c, &l);
    l.x = c->in[0]->data;
    l.scale = c->in[1]->data;
    l.bias = c->n_in > 2 && c->in[2] ? c->in[2]->data : NULL;
    l.mean = c->aux;
    l.rstd = c->aux ? l.mean + l.rows : NULL;
    return l;
}

struct work {
    const struct ew_kernels *k;
    struct ew_layer_norm l;
};

static void rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->layer_norm_run(&w->l, begin, end);
}

static void splits(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->layer_norm_back(&w->l, begin, end);
}

static ew_err run_forward(const struct ew_call *c)
{
    struct work w = {ew_cpu(c->be)->isa, of_call(c)};
    w.l.y = c->out[0]->data;
    ew_pool_run(ew_cpu(c->be)->pool, w.l.rows, rows, &w);
    return EW_OK;
}

/* Reduces the splits' partial sums of one parameter. */
static void add_splits(const struct work *w, int param, struct ew_tensor *to, bool fresh)
{
    const struct ew_column_sums s = {.rows = w->k->layer_norm_splits(w->l.rows),
                                     .channels = w->l.n,
                                     .step = 2 * w->l.n,
                                     .x = w->l.partial + param * w->l.n,
                                     .out = to->data,
                                     .add = !fresh};
    w->k->column_sums(&s, 0, w->l.n);
}

static ew_err run_backward(const struct ew_call *c)
{
    struct ew_tensor *const dbias = c->n_in > 2 ? c->din[2] : NULL;
    if (!c->dout[0])
        return EW_OK;
    struct work w = {ew_cpu(c->be)->isa, of_call(c)};
    w.l.dy = c->dout[0]->data;
    w.l.dx = c->din[0] ? c->din[0]->data : NULL;
    w.l.add_dx = !(c->fresh & 1);
    w.l.partial = c->din[1] || dbias ? c->scratch : NULL;
    ew_pool_run(ew_cpu(c->be)->pool, w.k->layer_norm_splits(w.l.rows), splits, &w);
    if (c->din[1])
        add_splits(&w, 0, c->din[1], c->fresh & 2);
    if (dbias)
        add_splits(&w, 1, dbias, c->fresh & 4);
    return EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct ew_layer_norm l;
    if (!resolve(query->c, &l))
        return 0;
    out[0] = (struct ew_kernel){.name = "layer norm", .run = run_forward};
    if (query->phase == EW_PHASE_BACKWARD) {
        const int64_t n = ew_cpu(query->be)->isa->layer_norm_splits(l.rows) * 2 * l.n;
        out[0].run = run_backward;
        out[0].fresh = true;
        out[0].scratch = (size_t)n * sizeof(float);
    }
    return 1;
}

const struct ew_kernel_family ew_offer_layer_norm = {.ops = EW_FAMILY_OPS(&ew_op_layer_norm),
                                                     .offer = offer};
