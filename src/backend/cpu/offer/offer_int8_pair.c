/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and products of two 8-bit tensors, of equal shape or with one broadcast over the pixels. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/int8_step.h"
#include "graph/ops.h"

#define GRAIN 16384 /* elements a tile, about */

struct step {
    struct ew_qpair pair;
    int64_t count, grain; /* of elements or rows */
    bool swapped;         /* the second input is the larger */
};

/* b is [batch, 1..., channels] for a's [batch, d..., channels]. */
static bool is_gate(const struct ew_shape *a, const struct ew_shape *b)
{
    bool ok = a->rank == b->rank && a->rank > 2 && a->dim[0] == b->dim[0] &&
              a->dim[a->rank - 1] == b->dim[a->rank - 1];
    for (int i = 1; ok && i < a->rank - 1; i++)
        ok = b->dim[i] == 1;
    return ok;
}

static bool resolve(const struct ew_call *c, struct step *out)
{
    const struct ew_shape *a = &c->in[EW_QBINARY_A]->shape, *b = &c->in[EW_QBINARY_B]->shape;
    *out = (struct step){.count = ew_tensor_count(c->out[0]), .grain = GRAIN};
    for (int i = 0; i < EW_QBINARY_INPUTS; i++)
        if (i != EW_QBINARY_A && i != EW_QBINARY_B && !ew_qknown(c, i))
            return false;
    if (ew_shape_equal(a, b))
        return true;
    out->swapped = is_gate(b, a);
    if (!is_gate(a, b) && !out->swapped)
        return false;
    out->pair.channels = a->dim[a->rank - 1];
    out->pair.rows = ew_shape_span(&c->out[0]->shape, 1, a->rank - 1);
    out->count = c->out[0]->shape.dim[0] * out->pair.rows;
    out->grain = ew_max_i64(GRAIN / ew_max_i64(out->pair.channels, 1), 1);
    return true;
}

static ew_err prepare(const struct ew_call *c)
{
    struct step *s = c->state;
    EW_CHECK(resolve(c, s), EW_ERR_INTERNAL, "%s: its inputs have changed", c->name);
    struct ew_qpair *p = &s->pair;
    p->times = c->op == &ew_op_qlinear_mul;
    const struct ew_quant_binary q = p->times ? ew_qmul_ratios(c) : ew_qadd_ratios(c);
    const int a = s->swapped ? EW_QBINARY_B : EW_QBINARY_A;
    const int b = s->swapped ? EW_QBINARY_A : EW_QBINARY_B;
    p->of_a = ew_qbyte_of(c, a, a + EW_QBINARY_A_ZERO);
    p->of_b = ew_qbyte_of(c, b, b + EW_QBINARY_A_ZERO);
    p->of_y = ew_qbyte_of(c, EW_QBINARY_Y_ZERO, EW_QBINARY_Y_ZERO);
    p->a_ratio = s->swapped && !p->times ? q.b_ratio : q.a_ratio;
    p->b_ratio = s->swapped ? q.a_ratio : q.b_ratio;
    ew_qclamp_of(&((const struct ew_qbinary_attr *)c->attr)->clamp, &p->of_y, &p->lo, &p->hi);
    return EW_OK;
}

static void tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct step *s = c->state;
    ew_cpu(c->be)->isa->int8_pair_run(&s->pair, begin * s->grain,
                                      ew_min_i64(end * s->grain, s->count));
}

static ew_err run(const struct ew_call *c)
{
    struct step *s = c->state;
    s->pair.a = c->in[s->swapped ? EW_QBINARY_B : EW_QBINARY_A]->data;
    s->pair.b = c->in[s->swapped ? EW_QBINARY_A : EW_QBINARY_B]->data;
    s->pair.y = c->out[0]->data;
    ew_parallel_for(c, (s->count + s->grain - 1) / s->grain, tiles);
    return EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct step s;
    if (query->phase != EW_PHASE_FORWARD || !resolve(query->c, &s))
        return 0;
    out[0] = (struct ew_kernel){
        .name = "int8 add/mul", .run = run, .prepare = prepare, .state = sizeof(struct step)};
    return 1;
}

const struct ew_kernel_family ew_offer_int8_pair = {
    .ops = EW_FAMILY_OPS(&ew_op_qlinear_add, &ew_op_qlinear_mul), .offer = offer};
