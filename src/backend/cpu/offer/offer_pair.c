/* SPDX-License-Identifier: Apache-2.0 */
/* Sums, differences, products and quotients with broadcasting: equal shapes, one element, or last
 * axes that repeat.  Gradients are left to the reference; add and mul have families of their own
 * for what training uses. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/share.h"
#include "graph/ops.h"

static const struct ew_op *const ops[] = {[EW_PAIR_ADD] = &ew_op_add,
                                          [EW_PAIR_SUB] = &ew_op_sub,
                                          [EW_PAIR_MUL] = &ew_op_mul,
                                          [EW_PAIR_DIV] = &ew_op_div};

/* How t goes through the output; false where it is neither of the three. */
static bool side_of(const struct ew_tensor *t, const struct ew_shape *y, struct ew_pair_side *out)
{
    const int64_t n = ew_tensor_count(t);
    *out = (struct ew_pair_side){.one = n == 1};
    if (n == 1 || n == ew_shape_count(y))
        return t->dtype == EW_F32;
    int64_t tail = 1;
    for (int i = 1; i <= t->shape.rank && tail < n; i++) {
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
    ew_cpu(c->be)->isa->pair_run(c->state, begin * EW_SHARE_GRAIN,
                                 ew_min_i64(end * EW_SHARE_GRAIN, ew_tensor_count(c->out[0])));
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
    ew_share_run(c, ew_share_grains(ew_tensor_count(c->out[0])), range);
    return EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct ew_pair p;
    if (query->phase != EW_PHASE_FORWARD || !resolve(query->c, query->op, &p))
        return 0;
    out[0] =
        (struct ew_kernel){.name = "broadcast", .run = run, .prepare = prepare, .state = sizeof(p)};
    return 1;
}

const struct ew_kernel_family ew_offer_pair = {
    .ops = EW_FAMILY_OPS(&ew_op_add, &ew_op_sub, &ew_op_mul, &ew_op_div), .offer = offer};
