/* SPDX-License-Identifier: Apache-2.0 */
/* Binary element-wise operators with broadcasting: equal shapes, a scalar, or an operand that
 * repeats over the leading axes, the trailing axes or both.  Backward only what losses need:
 * differences of equal shapes, and squares; the rest is left to the reference.  The usual cases of
 * add and mul have families of their own, which come first (cpu_offer.c): offer_add.c and
 * offer_channel_scale.c. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/parallel.h"
#include "graph/ops.h"

static const struct ew_op *const ops[] = {[EW_PAIR_ADD] = &ew_op_add,
                                          [EW_PAIR_SUB] = &ew_op_sub,
                                          [EW_PAIR_MUL] = &ew_op_mul,
                                          [EW_PAIR_DIV] = &ew_op_div,
                                          [EW_PAIR_PRELU] = &ew_op_prelu};

/* How t is broadcast to the output; false if in another way. */
static bool side_of(const struct ew_tensor *t, const struct ew_shape *y, struct ew_pair_side *out)
{
    const int64_t n = ew_tensor_count(t);
    *out = (struct ew_pair_side){.one = n == 1};
    if (n == 1 || n == ew_shape_count(y))
        return t->dtype == EW_F32;
    int64_t tail = 1;
    int i = 1;
    out->each = 1;
    for (; i <= t->shape.rank && t->shape.dim[t->shape.rank - i] == 1; i++)
        out->each *= y->dim[y->rank - i];
    for (; i <= t->shape.rank && tail < n; i++) {
        if (t->shape.dim[t->shape.rank - i] != y->dim[y->rank - i])
            return false;
        tail *= y->dim[y->rank - i];
    }
    out->repeat = n;
    return t->dtype == EW_F32 && tail == n;
}

static bool resolve(const struct ew_call *c, const struct ew_op *op, struct ew_pair *out)
{
    const struct ew_shape *y = &c->out[0]->shape;
    *out = (struct ew_pair){.kind = EW_PAIR_ADD};
    for (size_t i = 0; i < EW_COUNT(ops); i++)
        if (ops[i] == op)
            out->kind = (enum ew_pair_kind)i;
    return op->attr_size == 0 && c->n_in == 2 && ew_shape_count(y) > 0 &&
           side_of(c->in[0], y, &out->a) && side_of(c->in[1], y, &out->b) &&
           !(out->a.repeat && out->b.repeat);
}

static void range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    ew_cpu(c->be)->isa->pair_run(c->state, begin * EW_PARALLEL_GRAIN,
                                 ew_min_i64(end * EW_PARALLEL_GRAIN, ew_tensor_count(c->out[0])));
}

static ew_err prepare(const struct ew_call *c)
{
    EW_CHECK(resolve(c, c->op, c->state), EW_ERR_INTERNAL, "%s: the shapes have changed", c->name);
    return EW_OK;
}

static ew_err run(const struct ew_call *c)
{
    struct ew_pair *p = c->state;
    p->a.x = c->in[0]->data;
    p->b.x = c->in[1]->data;
    p->y = c->out[0]->data;
    ew_parallel_for(c, ew_parallel_grains(ew_tensor_count(c->out[0])), range);
    return EW_OK;
}

/* ---- Gradients ---- */

struct grad {
    const struct ew_call *c;
    struct ew_pair pair;
    struct ew_mul_map mul;
};

static void pair_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct grad *g = ctx;
    ew_cpu(g->c->be)->isa->pair_run(
        &g->pair, begin * EW_PARALLEL_GRAIN,
        ew_min_i64(end * EW_PARALLEL_GRAIN, ew_tensor_count(g->c->out[0])));
}

static void mul_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct grad *g = ctx;
    ew_cpu(g->c->be)->isa->mul_run(
        &g->mul, begin * EW_PARALLEL_GRAIN,
        ew_min_i64(end * EW_PARALLEL_GRAIN, ew_tensor_count(g->c->out[0])));
}

static void share(struct grad *g, ew_pool_fn *fn)
{
    ew_pool_run(ew_cpu(g->c->be)->pool, ew_parallel_grains(ew_tensor_count(g->c->out[0])), fn, g);
}

/* dx (+)= dy for the first input, dx (+)= -dy for the second. */
static ew_err run_sub_backward(const struct ew_call *c)
{
    static const float zero = 0;
    struct grad g = {.c = c};
    for (int i = 0; c->dout[0] && i < 2; i++) {
        if (!c->din[i])
            continue;
        const bool fresh = c->fresh >> i & 1;
        g.pair = (struct ew_pair){.kind = i ? EW_PAIR_SUB : EW_PAIR_ADD,
                                  .a = {.one = fresh, .x = fresh ? &zero : c->din[i]->data},
                                  .b = {.x = c->dout[0]->data},
                                  .y = c->din[i]->data};
        share(&g, pair_range);
    }
    return EW_OK;
}

/* x * x: dx += dy x for each of the two inputs, which are one value and so never fresh. */
static ew_err run_square_backward(const struct ew_call *c)
{
    struct grad g = {.c = c};
    for (int i = 0; c->dout[0] && c->din[0] && i < 2; i++) {
        g.mul = (struct ew_mul_map){c->dout[0]->data, c->in[0]->data, c->din[0]->data, true};
        share(&g, mul_range);
    }
    return EW_OK;
}

static int offer_backward(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    if (c->n_in != 2 || c->in[0]->dtype != EW_F32 || c->in[1]->dtype != EW_F32 ||
        !ew_shape_equal(&c->in[0]->shape, &c->in[1]->shape) || ew_tensor_count(c->in[0]) == 0)
        return 0;
    const bool square = query->op == &ew_op_mul && c->in[0] == c->in[1];
    if (!square && (query->op != &ew_op_sub || c->in[0] == c->in[1]))
        return 0;
    out[0] = (struct ew_kernel){.name = square ? "square" : "difference",
                                .run = square ? run_square_backward : run_sub_backward,
                                .fresh = true};
    return 1;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct ew_pair p;
    if (query->phase == EW_PHASE_BACKWARD)
        return offer_backward(query, out);
    if (query->phase != EW_PHASE_FORWARD || !resolve(query->c, query->op, &p))
        return 0;
    out[0] =
        (struct ew_kernel){.name = "broadcast", .run = run, .prepare = prepare, .state = sizeof(p)};
    return 1;
}

const struct ew_kernel_family ew_offer_pair = {
    .ops = EW_FAMILY_OPS(&ew_op_add, &ew_op_sub, &ew_op_mul, &ew_op_div, &ew_op_prelu),
    .offer = offer};
