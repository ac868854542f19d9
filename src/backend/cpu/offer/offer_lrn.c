/* SPDX-License-Identifier: Apache-2.0 */
/* Local response normalisation; its gradient is left to the reference. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/parallel.h"
#include "graph/ops.h"
#include "op/norm.h"

static struct ew_lrn of_call(const struct ew_call *c)
{
    const struct ew_lrn_attr *a = c->attr;
    const struct ew_shape *x = &c->in[0]->shape;
    return (struct ew_lrn){.rows = ew_shape_span(x, 0, x->rank - 1),
                           .channels = x->dim[x->rank - 1],
                           .size = (int32_t)a->size,
                           .alpha = (float)a->alpha,
                           .beta = (float)a->beta,
                           .k = (float)a->bias,
                           .x = c->in[0]->data,
                           .y = c->out[0]->data};
}

static void rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    const struct ew_lrn l = of_call(c);
    k->lrn_run(&l, begin, end, ew_thread_scratch(c, k->lrn_scratch(&l), worker));
}

static ew_err run(const struct ew_call *c)
{
    ew_parallel_for(c, of_call(c).rows, rows);
    return EW_OK;
}

#define SIZE_MAX_OF(l) (4 * (l).channels) /* wider windows cover all channels anyway */

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    if (query->phase != EW_PHASE_FORWARD || c->in[0]->dtype != EW_F32 ||
        ew_tensor_count(c->in[0]) == 0)
        return 0;
    const struct ew_lrn l = of_call(c);
    if (l.size > SIZE_MAX_OF(l))
        return 0;
    out[0] = (struct ew_kernel){
        .name = "lrn",
        .run = run,
        .scratch = ew_thread_scratch_bytes(query->be, ew_cpu(query->be)->isa->lrn_scratch(&l))};
    return 1;
}

const struct ew_kernel_family ew_offer_lrn = {.ops = EW_FAMILY_OPS(&ew_op_lrn), .offer = offer};
