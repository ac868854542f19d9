/* SPDX-License-Identifier: Apache-2.0 */
/* Dense layers (Gemm, MatMul) on CUDA devices. */
#include "backend/cuda/cuda_backend.h"
#include "graph/ops.h"
#include "op/math_attr.h"
#include "op/product.h"

/* A may have more than two dimensions: all but the last are flattened into m. */
bool ew_cuda_dense_of(const struct ew_call *c, struct ew_cuda_dense *d)
{
    const struct ew_shape *a = &c->in[0]->shape, *b = &c->in[1]->shape;
    if (c->op == &ew_op_matmul) {
        if (a->rank < 2 || b->rank != 2)
            return false;
        *d = (struct ew_cuda_dense){
            .m = ew_shape_span(a, 0, a->rank - 1), .n = b->dim[1], .k = b->dim[0], .alpha = 1};
        return d->m > 0 && d->n > 0 && d->k > 0;
    }
    const struct ew_gemm_attr *g = c->attr;
    *d = (struct ew_cuda_dense){.m = a->dim[g->trans_a],
                                .n = b->dim[!g->trans_b],
                                .k = a->dim[!g->trans_a],
                                .trans_a = g->trans_a,
                                .trans_b = g->trans_b,
                                .alpha = (float)g->alpha,
                                .beta = (float)g->beta};
    return d->m > 0 && d->n > 0 && d->k > 0;
}

bool ew_cuda_bias_fits(const struct ew_call *c, const struct ew_cuda_dense *d)
{
    const struct ew_tensor *b = ew_call_in(c, 2);
    if (!b)
        return true;
    const int r = b->shape.rank;
    return r >= 1 && b->shape.dim[r - 1] == d->n && ew_tensor_count(b) == d->n && d->beta >= 1 &&
           d->beta <= 1;
}

static ew_err run_dense(const struct ew_call *c)
{
    struct ew_cuda_dense d;
    ew_cuda_dense_of(c, &d);
    const struct ew_cuda_gemm p = {.type = ew_cuda_storage(c->in[0]),
                                   .math = ew_cuda(c->be)->math,
                                   .trans_a = d.trans_a,
                                   .trans_b = d.trans_b,
                                   .m = d.m,
                                   .n = d.n,
                                   .k = d.k,
                                   .alpha = d.alpha,
                                   .a = c->in[0]->data,
                                   .b = ew_cuda_weight(c, 1),
                                   .bias = ew_cuda_data(ew_call_in(c, 2)),
                                   .typed_bias = ew_cuda_weight(c, 2),
                                   .y = c->out[0]->data};
    EW_CUDA_LAUNCH(c, gemm, &p);
    return EW_OK;
}

/* dA = dY B' (B stored transposed: dY B), dB = A' dY (stored transposed: dY' A). */
static ew_err back_dense(const struct ew_call *c)
{
    struct ew_cuda_dense d;
    ew_cuda_dense_of(c, &d);
    const void *const dy = c->dout[0]->data, *const a = c->in[0]->data;
    const void *const b = ew_cuda_weight(c, 1);
    const struct ew_cuda *be = ew_cuda(c->be);
    struct ew_cuda_queue *side = ew_cuda_side(c);
    struct ew_cuda_gemm p = {.type = ew_cuda_storage(c->in[0]), .math = be->math, .alpha = d.alpha};
    EW_TRY(ew_cuda_fork(be, side));
    if (c->din[1]) {
        p.m = d.trans_b ? d.n : d.k;
        p.n = d.trans_b ? d.k : d.n;
        p.k = d.m;
        p.a = d.trans_b ? dy : a;
        p.b = d.trans_b ? a : dy;
        p.trans_a = d.trans_b ? 1 : !d.trans_a;
        p.trans_b = d.trans_b ? d.trans_a : 0;
        p.beta = ew_cuda_adds(c, 1) ? 1 : 0;
        p.y = c->din[1]->data;
        p.out_f32 = c->din[1]->dtype == EW_F32;
        EW_TRY(ew_cuda_check(be->cu, be->cu->gemm(side, &p), "gemm wgrad"));
        p.out_f32 = 0;
    }
    if (c->n_in > 2 && c->din[2]) {
        const struct ew_cuda_reduce r = {.type = p.type,
                                         .out_f32 = 1,
                                         .add = ew_cuda_adds(c, 2),
                                         .outer = 1,
                                         .mid = d.m,
                                         .inner = d.n,
                                         .scale = 1,
                                         .a = dy,
                                         .out = c->din[2]->data,
                                         .scratch = c->scratch};
        EW_TRY(ew_cuda_check(be->cu, be->cu->reduce(side, &r), "bias gradient"));
    }
    if (c->din[0]) {
        p.m = d.trans_a ? d.k : d.m;
        p.n = d.trans_a ? d.m : d.k;
        p.k = d.n;
        p.a = d.trans_a ? b : dy;
        p.b = d.trans_a ? dy : b;
        p.trans_a = d.trans_a ? d.trans_b : 0;
        p.trans_b = d.trans_a ? 1 : !d.trans_b;
        p.beta = ew_cuda_adds(c, 0) ? 1 : 0;
        p.y = c->din[0]->data;
        EW_CUDA_LAUNCH(c, gemm, &p);
    }
    return ew_cuda_join(be, side);
}

int ew_cuda_offer_dense(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    struct ew_cuda_dense d;
    /* B may be a weight (float32) or an activation; A is never a weight. */
    const bool weight = c->in[1]->dtype == EW_F32;
    const struct ew_tensor *bias = ew_call_in(c, 2);
    if (ew_cuda_query_type(query, (weight ? 1 << 1 : 0) | 1 << 2, 0) < 0 ||
        !ew_cuda_dense_of(c, &d) || !ew_cuda_bias_fits(c, &d) || (bias && bias->dtype != EW_F32))
        return 0;
    if (query->phase == EW_PHASE_BACKWARD) {
        ew_cuda_one(out, "gemm", back_dense, ew_cuda_reduce_scratch(1, d.m, d.n, 1));
        out->prepare = ew_cuda_open_side;
        return 1;
    }
    const int n = ew_cuda_one(out, "gemm", run_dense, 0);
    ew_cuda_pack_weights(c, out);
    return n;
}
