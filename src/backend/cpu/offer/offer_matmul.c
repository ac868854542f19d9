/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products, single and batched: A B is the dgrad of a dense layer with filter B
 * (step/adjoint_step.c).  A batch of A with one B is one tall matrix.  Other batches are computed
 * product by product, in parallel over the products or, if there are fewer than threads, inside
 * each.
 *
 * Also gemm without transposition, with alpha = beta = 1 and a bias of one row. */
#include <string.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/adjoint_step.h"
#include "graph/ops.h"
#include "op/math_attr.h"
#include "op/product.h"

struct stack {
    struct ew_stacks s;
    int64_t count;              /* products */
    struct ew_conv_shape shape; /* of each product */
    bool share_a, share_b;      /* several products read the same A, or B */
};

static bool is_plain(const struct ew_call *c)
{
    const struct ew_gemm_attr *a = c->attr;
    const struct ew_tensor *bias = c->n_in > 2 ? c->in[2] : NULL;
    const int64_t n = c->in[1]->shape.dim[1];
    if (a->trans_a || a->trans_b || a->alpha < 1 || a->alpha > 1 || a->beta < 1 || a->beta > 1)
        return false;
    return !bias || (ew_tensor_count(bias) == n && bias->shape.dim[bias->shape.rank - 1] == n);
}

static bool resolve(const struct ew_call *c, struct stack *out)
{
    const bool gemm = c->op->attr_size > 0;
    if (c->in[0]->dtype != EW_F32 || (gemm && !is_plain(c)) ||
        ew_stacks_of(c->in[0], c->in[1], &out->s) != EW_OK || ew_tensor_count(c->out[0]) == 0 ||
        out->s.k == 0)
        return false;
    const int64_t limit = INT32_MAX;
    if (ew_tensor_count(c->in[0]) >= limit || ew_tensor_count(c->in[1]) >= limit ||
        ew_tensor_count(c->out[0]) >= limit)
        return false;
    out->count = ew_shape_count(&out->s.batch);
    out->share_a = ew_tensor_count(c->in[0]) < out->count * out->s.m * out->s.k;
    out->share_b = ew_tensor_count(c->in[1]) < out->count * out->s.k * out->s.n;
    int64_t rows = out->s.m;
    if (!out->share_a && ew_tensor_count(c->in[1]) == out->s.k * out->s.n) {
        rows *= out->count;
        out->count = 1;
    }
    const struct ew_conv_axis one = {.in = 1, .out = 1, .taps = 1, .stride = 1, .dilation = 1};
    out->shape = (struct ew_conv_shape){.batch = (int32_t)rows,
                                        .groups = 1,
                                        .cin = (int32_t)out->s.n,
                                        .cout = (int32_t)out->s.k,
                                        .axis = {one, one, one}};
    return true;
}

/* ---- One product ---- */

static ew_err prepare_forward(const struct ew_call *c)
{
    struct stack s;
    EW_CHECK(resolve(c, &s), EW_ERR_INTERNAL, "%s: the product has changed", c->name);
    ew_adjoint_forward_prepare(c, &s.shape);
    return EW_OK;
}

static ew_err prepare_backward(const struct ew_call *c)
{
    struct stack s;
    EW_CHECK(resolve(c, &s), EW_ERR_INTERNAL, "%s: the product has changed", c->name);
    ew_adjoint_backward_prepare(c, &s.shape);
    return EW_OK;
}

/* ---- Batched products: state is struct stack ---- */

enum part { FORWARD, GRAD_A, GRAD_B };

struct work {
    const struct ew_call *c;
    enum part part;
    size_t each; /* bytes of scratch for a thread */
};

/* Scratch for one thread.  That of all threads together is also enough for all of them on one
 * product. */
static size_t part_scratch(const struct ew_backend *be, const struct ew_conv_shape *s, enum part p)
{
    const struct ew_kernels *k = ew_cpu(be)->isa;
    const enum ew_conv_method m = p == FORWARD ? EW_CONV_DGRAD : EW_CONV_GEMM;
    return p == GRAD_B ? ew_adjoint_filter_scratch(k, s, 1) : ew_adjoint_pass_scratch(k, m, s, 1);
}

/* Computes product i. */
static void run_product(const struct ew_call *c, enum part part, int64_t i)
{
    const struct stack *st = c->state;
    const struct ew_stacks *s = &st->s;
    int64_t ia, ib;
    ew_stacks_locate(s, i, &ia, &ib);
    const int64_t a = ia * s->m * s->k, b = ib * s->k * s->n, y = i * s->m * s->n;
    const float *const weights = (const float *)c->in[1]->data + b;
    if (part == FORWARD)
        ew_adjoint_pass_run(c, &(struct ew_adjoint_pass){.m = EW_CONV_DGRAD,
                                                         .s = &st->shape,
                                                         .x = (const float *)c->in[0]->data + a,
                                                         .w = weights,
                                                         .y = (float *)c->out[0]->data + y});
    else if (part == GRAD_A)
        ew_adjoint_pass_run(c, &(struct ew_adjoint_pass){.m = EW_CONV_GEMM,
                                                         .s = &st->shape,
                                                         .x = (const float *)c->dout[0]->data + y,
                                                         .w = weights,
                                                         .y = (float *)c->din[0]->data + a,
                                                         .add = st->share_a || !(c->fresh & 1)});
    else
        ew_adjoint_filter_run(c, &(struct ew_conv_wgrad){.shape = st->shape,
                                                         .x = (const float *)c->dout[0]->data + y,
                                                         .dy = (const float *)c->in[0]->data + a,
                                                         .dw = (float *)c->din[1]->data + b,
                                                         .add = st->share_b || !(c->fresh & 2)});
}

/* Products in parallel; pool loops inside run on the calling thread. */
static void products(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    struct ew_call call = *w->c;
    call.scratch = ew_thread_scratch(w->c, w->each, worker);
    for (int64_t i = begin; i < end; i++)
        run_product(&call, w->part, i);
}

/* `in_order`: products accumulate into one matrix, so they run one after the other. */
static void run_part(const struct ew_call *c, enum part part, bool in_order)
{
    const struct stack *st = c->state;
    struct work w = {c, part, part_scratch(c->be, &st->shape, part)};
    if (!in_order && st->count >= ew_pool_threads(ew_cpu(c->be)->pool))
        ew_pool_run(ew_cpu(c->be)->pool, st->count, products, &w);
    else
        for (int64_t i = 0; i < st->count; i++)
            run_product(c, part, i);
}

static ew_err run_stack(const struct ew_call *c)
{
    run_part(c, FORWARD, false);
    return EW_OK;
}

static ew_err run_stack_backward(const struct ew_call *c)
{
    const struct stack *st = c->state;
    if (!c->dout[0])
        return EW_OK;
    for (int i = 0; i < 2; i++) {
        const bool shared = i ? st->share_b : st->share_a;
        if (!c->din[i])
            continue;
        if (shared && c->fresh >> i & 1)
            memset(c->din[i]->data, 0, ew_tensor_bytes(c->din[i]));
        run_part(c, i ? GRAD_B : GRAD_A, shared);
    }
    return EW_OK;
}

static ew_err prepare_stack(const struct ew_call *c)
{
    EW_CHECK(resolve(c, c->state), EW_ERR_INTERNAL, "%s: the product has changed", c->name);
    return EW_OK;
}

/* ---- Offers ---- */

static struct ew_kernel stack_kernel(const struct ew_kernel_query *q, const struct stack *s)
{
    const bool forward = q->phase == EW_PHASE_FORWARD;
    size_t each = part_scratch(q->be, &s->shape, forward ? FORWARD : GRAD_A);
    if (!forward) {
        const size_t filter = part_scratch(q->be, &s->shape, GRAD_B);
        each = filter > each ? filter : each;
    }
    return (struct ew_kernel){.run = forward ? run_stack : run_stack_backward,
                              .prepare = prepare_stack,
                              .fresh = !forward,
                              .scratch = ew_thread_scratch_bytes(q->be, each),
                              .state = sizeof(*s)};
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    static const char name[] = "gemm";
    struct stack s;
    struct ew_call c = *query->c;
    c.be = query->be;
    if (!resolve(&c, &s))
        return 0;
    if (s.count > 1) {
        out[0] = stack_kernel(query, &s);
    } else if (query->phase == EW_PHASE_FORWARD) {
        out[0] = ew_adjoint_forward_kernel(&c, &s.shape, name);
        out[0].prepare = prepare_forward;
        return 1; /* the method's own name: packed layouts may depend on the rows */
    } else {
        out[0] = ew_adjoint_backward_kernel(query->be, &s.shape);
        out[0].prepare = prepare_backward;
    }
    out[0].name = name;
    return 1;
}

const struct ew_kernel_family ew_offer_matmul = {.ops = EW_FAMILY_OPS(&ew_op_matmul, &ew_op_gemm),
                                                 .offer = offer};
