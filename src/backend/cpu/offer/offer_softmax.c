/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax along the last axis, and softmax cross-entropy with one label for each row, forward and
 * backward.  Class weights, ignored labels, label smoothing and other axes are left to the
 * reference. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "graph/ops.h"
#include "op/loss.h"
#include "op/softmax.h"

struct work {
    const struct ew_kernels *k;
    struct ew_softmax s;
};

static void tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->softmax_run(&w->s, begin, end);
}

static ew_err run_softmax(const struct ew_call *c)
{
    struct ew_lanes l;
    EW_TRY(ew_softmax_lanes(c, &c->in[0]->shape, &l));
    struct work w = {ew_cpu(c->be)->isa,
                     {.classes = l.n, .x = c->in[0]->data, .p = c->out[0]->data}};
    ew_pool_run(ew_cpu(c->be)->pool, l.outer, tiles, &w);
    return EW_OK;
}

static void back_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->softmax_back(&w->s, begin, end);
}

static ew_err run_softmax_back(const struct ew_call *c)
{
    struct ew_lanes l;
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    EW_TRY(ew_softmax_lanes(c, &c->out[0]->shape, &l));
    struct work w = {ew_cpu(c->be)->isa,
                     {.classes = l.n,
                      .x = c->dout[0]->data,
                      .p = c->out[0]->data,
                      .dx = c->din[0]->data,
                      .add = !(c->fresh & 1)}};
    ew_pool_run(ew_cpu(c->be)->pool, l.outer, back_tiles, &w);
    return EW_OK;
}

/* ---- Cross-entropy ---- */

static struct work loss_of(const struct ew_call *c, const struct ew_lanes *l)
{
    return (struct work){ew_cpu(c->be)->isa,
                         {.classes = l->n, .x = c->in[0]->data, .label = c->in[1]->data}};
}

/* Scratch: the losses of the rows, added in order. */
static ew_err run_loss(const struct ew_call *c)
{
    const struct ew_loss_attr *a = c->attr;
    const struct ew_lanes l = ew_loss_lanes(c);
    double sum = 0, divisor;
    for (int64_t i = 0; i < l.outer; i++) { /* the kernel does not check labels */
        int64_t label;
        EW_TRY(ew_loss_label(c, i, l.n, &label));
    }
    EW_TRY(ew_loss_divisor(c, &l, &divisor));
    struct work w = loss_of(c, &l);
    w.s.loss = c->scratch;
    ew_pool_run(ew_cpu(c->be)->pool, l.outer, tiles, &w);
    for (int64_t i = 0; i < l.outer; i++)
        sum += (double)w.s.loss[i];
    *(float *)c->out[0]->data = (float)(a->reduction == EW_LOSS_MEAN ? sum / divisor : sum);
    return EW_OK;
}

/* Labels were checked by the forward step. */
static ew_err run_loss_back(const struct ew_call *c)
{
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    const struct ew_lanes l = ew_loss_lanes(c);
    double divisor;
    EW_TRY(ew_loss_divisor(c, &l, &divisor));
    struct work w = loss_of(c, &l);
    w.s.dx = c->fresh & 1 ? c->din[0]->data : c->scratch;
    w.s.grad = (float)ew_loss_gradient(c, 0, divisor);
    ew_pool_run(ew_cpu(c->be)->pool, l.outer, tiles, &w);
    if (!(c->fresh & 1)) {
        const struct ew_add_map sum = {.a = c->din[0]->data, .b = c->scratch, .y = c->din[0]->data};
        ew_cpu(c->be)->isa->add_run(&sum, 0, ew_tensor_count(c->din[0]));
    }
    return EW_OK;
}

static bool loss_fits(const struct ew_call *c)
{
    const struct ew_loss_attr *a = c->attr;
    const struct ew_lanes l = ew_loss_lanes(c);
    return a->reduction != EW_LOSS_NONE && a->ignore_index == EW_LOSS_NO_IGNORE &&
           a->smoothing <= 0 && (c->n_in < 3 || !c->in[2]) && (c->n_out < 2 || !c->out[1]) &&
           c->in[1]->dtype == EW_S64 && l.inner == 1 && l.n > 0;
}

static int offer_loss(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    if (!loss_fits(c))
        return 0;
    const bool back = query->phase == EW_PHASE_BACKWARD;
    const int64_t floats = back ? ew_tensor_count(c->in[0]) : ew_loss_lanes(c).outer;
    out[0] = (struct ew_kernel){.name = "softmax",
                                .run = back ? run_loss_back : run_loss,
                                .fresh = true,
                                .scratch = (size_t)floats * sizeof(float)};
    return 1;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    struct ew_lanes l;
    if (c->in[0]->dtype != EW_F32)
        return 0;
    if (c->n_in > 1)
        return offer_loss(query, out);
    if (ew_softmax_lanes(c, &c->in[0]->shape, &l) != EW_OK || l.inner != 1 || l.n == 0)
        return 0;
    const bool back = query->phase == EW_PHASE_BACKWARD;
    out[0] = (struct ew_kernel){.name = "softmax",
                                .run = back ? run_softmax_back : run_softmax,
                                .fresh = back,
                                .in_place = back};
    return 1;
}

const struct ew_kernel_family ew_offer_softmax = {
    .ops = EW_FAMILY_OPS(&ew_op_softmax, &ew_op_softmax_cross_entropy), .offer = offer};
