/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move rows of bytes: concat, split and channel_shuffle, forward. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "graph/ops.h"
#include "graph/shuffle.h"
#include "op/shape_attr.h"

#define GRAIN 32768 /* bytes of a tile, about */

/* Concat and split: rows of the whole tensor and of its parts.  A row spans the dimensions from
 * `axis` on. */
struct work {
    const struct ew_call *c;
    struct ew_tensor *const *parts;
    const struct ew_tensor *whole;
    int n_parts, axis;
    int64_t rows, grain;
    bool concat; /* else split */
};

static int64_t row_of(const struct ew_tensor *t, int axis)
{
    return ew_shape_span(&t->shape, axis, t->shape.rank);
}

static void tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    const int64_t whole = row_of(w->whole, w->axis);
    uint8_t *at = w->whole->data;
    for (int i = 0; i < w->n_parts; i++) {
        const int64_t n = row_of(w->parts[i], w->axis);
        const struct ew_qrows rows = {.n = n,
                                      .in_step = w->concat ? n : whole,
                                      .out_step = w->concat ? whole : n,
                                      .in = w->concat ? w->parts[i]->data : at,
                                      .out = w->concat ? at : w->parts[i]->data};
        ew_cpu(w->c->be)->isa->int8_copy_rows(&rows, begin * w->grain,
                                              ew_min_i64(end * w->grain, w->rows));
        at += n;
    }
}

static ew_err run_parts(struct work *w, int64_t axis)
{
    EW_TRY(ew_shape_axis(axis, w->whole->shape.rank, &w->axis));
    w->rows = ew_shape_span(&w->whole->shape, 0, w->axis);
    w->grain = ew_max_i64(GRAIN / ew_max_i64(row_of(w->whole, w->axis), 1), 1);
    ew_pool_run(ew_cpu(w->c->be)->pool, (w->rows + w->grain - 1) / w->grain, tiles, w);
    return EW_OK;
}

static ew_err run_concat(const struct ew_call *c)
{
    struct work w = {
        .c = c, .parts = c->in, .whole = c->out[0], .n_parts = c->n_in, .concat = true};
    return run_parts(&w, ((const struct ew_concat_attr *)c->attr)->axis);
}

static ew_err run_split(const struct ew_call *c)
{
    struct work w = {.c = c, .parts = c->out, .whole = c->in[0], .n_parts = c->n_out};
    return run_parts(&w, ((const struct ew_split_attr *)c->attr)->axis);
}

struct shuffle {
    const struct ew_kernels *k;
    struct ew_qshuffle s;
    int64_t rows, grain;
};

static void shuffle_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct shuffle *s = ctx;
    s->k->int8_shuffle_run(&s->s, begin * s->grain, ew_min_i64(end * s->grain, s->rows));
}

static ew_err run_shuffle(const struct ew_call *c)
{
    const int64_t groups = ((const struct ew_channel_shuffle_attr *)c->attr)->groups;
    const struct ew_shape *x = &c->in[0]->shape;
    const int64_t channels = x->dim[x->rank - 1];
    struct shuffle s = {.k = ew_cpu(c->be)->isa,
                        .s = {.groups = groups,
                              .each = channels / groups,
                              .in = c->in[0]->data,
                              .out = c->out[0]->data},
                        .rows = ew_shape_span(x, 0, x->rank - 1),
                        .grain = ew_max_i64(GRAIN / ew_max_i64(channels, 1), 1)};
    ew_pool_run(ew_cpu(c->be)->pool, (s.rows + s.grain - 1) / s.grain, shuffle_tiles, &s);
    return EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    static const struct {
        const struct ew_op *op;
        ew_err (*run)(const struct ew_call *c);
    } runs[] = {{&ew_op_concat, run_concat},
                {&ew_op_split, run_split},
                {&ew_op_channel_shuffle, run_shuffle}};
    const struct ew_call *c = query->c;
    if (ew_dtype_size(c->in[0]->dtype) != 1 || query->phase != EW_PHASE_FORWARD)
        return 0;
    for (int i = 0; i < c->n_out; i++)
        if (!c->out[i])
            return 0; /* an unused output has no tensor, so its size is unknown */
    for (size_t i = 0; i < EW_COUNT(runs); i++)
        if (runs[i].op == query->op)
            out[0] = (struct ew_kernel){.name = "int8 copy", .run = runs[i].run};
    return 1;
}

const struct ew_kernel_family ew_offer_int8_move = {
    .ops = EW_FAMILY_OPS(&ew_op_concat, &ew_op_split, &ew_op_channel_shuffle), .offer = offer};
