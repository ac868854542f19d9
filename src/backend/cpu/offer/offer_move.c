/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move rows of channels: concat, split and channel_shuffle, of float32 forward and
 * backward, of bytes forward. */
#include <string.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "graph/ops.h"
#include "graph/shuffle.h"
#include "op/shape_attr.h"

#define GRAIN 32768 /* bytes of a tile, about */

/* Rows of a tile, of a tensor of this type with `row` elements in each. */
static int64_t grain_of(enum ew_dtype dtype, int64_t row)
{
    return ew_max_i64(GRAIN / ew_max_i64(row * (int64_t)ew_dtype_size(dtype), 1), 1);
}

/* Concat and split: rows of the whole tensor and of its parts.  A row spans the dimensions from
 * `axis` on. */
struct work {
    const struct ew_call *c;
    struct ew_tensor *const *parts;
    struct ew_tensor *whole;
    int n_parts, axis;
    int64_t rows, grain;
    enum { CONCAT, SPLIT, CONCAT_BACK, SPLIT_BACK } what;
};

static int64_t row_of(const struct ew_tensor *t, int axis)
{
    return ew_shape_span(&t->shape, axis, t->shape.rank);
}

/* The gradient of an unused part is zero. */
static void clear_rows(float *to, int64_t n, int64_t step, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        memset(to + i * step, 0, (size_t)n * sizeof(float));
}

static void byte_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    const bool out = w->what == SPLIT;
    const int64_t whole = row_of(w->whole, w->axis);
    uint8_t *at = w->whole->data;
    for (int i = 0; i < w->n_parts; i++) {
        const int64_t n = row_of(w->parts[i], w->axis);
        const struct ew_qrows rows = {.n = n,
                                      .in_step = out ? whole : n,
                                      .out_step = out ? n : whole,
                                      .in = out ? at : w->parts[i]->data,
                                      .out = out ? w->parts[i]->data : at};
        ew_cpu(w->c->be)->isa->int8_copy_rows(&rows, begin * w->grain,
                                              ew_min_i64(end * w->grain, w->rows));
        at += n;
    }
}

static void parts_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    const struct ew_call *c = w->c;
    const bool out = w->what == SPLIT || w->what == CONCAT_BACK; /* from the whole to the parts */
    struct ew_tensor *const *shapes = w->what == SPLIT || w->what == SPLIT_BACK ? c->out : c->in;
    const int64_t whole = row_of(w->whole, w->axis), first = begin * w->grain;
    const int64_t last = ew_min_i64(end * w->grain, w->rows);
    float *at = w->whole->data;
    for (int i = 0; i < w->n_parts; i++) {
        const int64_t n = row_of(shapes[i], w->axis);
        const int input = w->what == CONCAT_BACK ? i : 0;
        const bool fresh = input < 32 && (c->fresh >> input & 1);
        const bool back = w->what == CONCAT_BACK || w->what == SPLIT_BACK;
        if (w->parts[i]) {
            float *part = w->parts[i]->data;
            const struct ew_copy_rows rows = {.n = n,
                                              .in_step = out ? whole : n,
                                              .out_step = out ? n : whole,
                                              .in = out ? at : part,
                                              .out = out ? part : at,
                                              .add = back && !fresh};
            ew_cpu(c->be)->isa->copy_rows(&rows, first, last);
        } else if (w->what == SPLIT_BACK && fresh) {
            clear_rows(at + first * whole, n, whole, last - first);
        }
        at += n;
    }
}

static ew_err run_parts(struct work *w, int64_t axis)
{
    EW_TRY(ew_shape_axis(axis, w->whole->shape.rank, &w->axis));
    w->rows = ew_shape_span(&w->whole->shape, 0, w->axis);
    w->grain = grain_of(w->whole->dtype, row_of(w->whole, w->axis));
    ew_pool_run(ew_cpu(w->c->be)->pool, (w->rows + w->grain - 1) / w->grain,
                w->whole->dtype == EW_F32 ? parts_tiles : byte_tiles, w);
    return EW_OK;
}

static ew_err run_concat(const struct ew_call *c)
{
    struct work w = {
        .c = c, .parts = c->in, .whole = c->out[0], .n_parts = c->n_in, .what = CONCAT};
    return run_parts(&w, ((const struct ew_concat_attr *)c->attr)->axis);
}

static ew_err run_concat_back(const struct ew_call *c)
{
    struct work w = {
        .c = c, .parts = c->din, .whole = c->dout[0], .n_parts = c->n_in, .what = CONCAT_BACK};
    return w.whole ? run_parts(&w, ((const struct ew_concat_attr *)c->attr)->axis) : EW_OK;
}

static ew_err run_split(const struct ew_call *c)
{
    struct work w = {
        .c = c, .parts = c->out, .whole = c->in[0], .n_parts = c->n_out, .what = SPLIT};
    return run_parts(&w, ((const struct ew_split_attr *)c->attr)->axis);
}

static ew_err run_split_back(const struct ew_call *c)
{
    struct work w = {
        .c = c, .parts = c->dout, .whole = c->din[0], .n_parts = c->n_out, .what = SPLIT_BACK};
    return w.whole ? run_parts(&w, ((const struct ew_split_attr *)c->attr)->axis) : EW_OK;
}

/* ---- Shuffles ---- */

struct shuffle {
    const struct ew_kernels *k;
    const struct ew_tensor *from;
    struct ew_tensor *to;
    int64_t groups, each, rows, grain;
    bool add;
};

static void shuffle_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct shuffle *s = ctx;
    const int64_t first = begin * s->grain, last = ew_min_i64(end * s->grain, s->rows);
    if (s->from->dtype == EW_F32) {
        const struct ew_shuffle f = {s->groups, s->each, s->from->data, s->to->data, s->add};
        s->k->shuffle_run(&f, first, last);
    } else {
        const struct ew_qshuffle q = {s->groups, s->each, s->from->data, s->to->data};
        s->k->int8_shuffle_run(&q, first, last);
    }
}

/* The inverse of a shuffle with g groups of n is one with n groups of g. */
static ew_err shuffle(const struct ew_call *c, const struct ew_tensor *from, struct ew_tensor *to,
                      bool back)
{
    const int64_t groups = ((const struct ew_channel_shuffle_attr *)c->attr)->groups;
    const int64_t channels = from->shape.dim[from->shape.rank - 1], each = channels / groups;
    struct shuffle s = {.k = ew_cpu(c->be)->isa,
                        .from = from,
                        .to = to,
                        .groups = back ? each : groups,
                        .each = back ? groups : each,
                        .rows = ew_shape_span(&from->shape, 0, from->shape.rank - 1),
                        .grain = grain_of(from->dtype, channels),
                        .add = back && !(c->fresh & 1)};
    ew_pool_run(ew_cpu(c->be)->pool, (s.rows + s.grain - 1) / s.grain, shuffle_tiles, &s);
    return EW_OK;
}

static ew_err run_shuffle(const struct ew_call *c)
{
    return shuffle(c, c->in[0], c->out[0], false);
}

static ew_err run_shuffle_back(const struct ew_call *c)
{
    return c->din[0] && c->dout[0] ? shuffle(c, c->dout[0], c->din[0], true) : EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    static const struct {
        const struct ew_op *op;
        ew_err (*run[2])(const struct ew_call *c); /* forward, backward */
    } runs[] = {{&ew_op_concat, {run_concat, run_concat_back}},
                {&ew_op_split, {run_split, run_split_back}},
                {&ew_op_channel_shuffle, {run_shuffle, run_shuffle_back}}};
    const struct ew_call *c = query->c;
    const bool bytes = ew_dtype_size(c->in[0]->dtype) == 1;
    if (c->in[0]->dtype != EW_F32 && (!bytes || query->phase != EW_PHASE_FORWARD))
        return 0;
    for (int i = 0; i < c->n_out; i++)
        if (!c->out[i])
            return 0; /* an unused output has no tensor, so its size is unknown */
    for (size_t i = 0; i < EW_COUNT(runs); i++)
        if (runs[i].op == query->op)
            out[0] = (struct ew_kernel){.name = bytes ? "int8 copy" : "copy",
                                        .run = runs[i].run[query->phase == EW_PHASE_BACKWARD],
                                        .fresh = !bytes};
    return 1;
}

const struct ew_kernel_family ew_offer_move = {
    .ops = EW_FAMILY_OPS(&ew_op_concat, &ew_op_split, &ew_op_channel_shuffle), .offer = offer};
