/* SPDX-License-Identifier: Apache-2.0 */
/* Pad: rows along the last padded axis, whose middle is one contiguous copy. */
#include <string.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/parallel.h"
#include "graph/ops.h"
#include "op/pad.h"
#include "op/types.h"

struct work {
    const float *x;
    float *y;
    int mode, axis; /* the last padded axis */
    struct ew_pads pads;
    struct ew_shape in, out;
    int64_t rows, each; /* rows of the output before `axis`; elements of one position of it */
    int64_t grain;      /* rows of a tile */
    float value;
};

static bool resolve(const struct ew_call *c, struct work *w)
{
    const struct ew_tensor *value = ew_call_in(c, EW_PAD_VALUE);
    *w = (struct work){.mode = ((const struct ew_pad_attr *)c->attr)->mode,
                       .in = c->in[0]->shape,
                       .out = c->out[0]->shape};
    if (ew_pads_read(c, &w->pads) != EW_OK)
        return false;
    for (int i = 0; i < w->in.rank; i++)
        if (w->pads.before[i] != 0 || w->pads.after[i] != 0)
            w->axis = i;
    w->rows = ew_shape_span(&w->out, 0, w->axis);
    w->each = ew_shape_span(&w->out, w->axis + 1, w->out.rank);
    w->grain = ew_max_i64(1, EW_PARALLEL_GRAIN / ew_max_i64(1, w->each * w->out.dim[w->axis]));
    w->value = value && value->data ? *(const float *)value->data : 0;
    return true;
}

static void fill(float *to, float value, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = value;
}

/* The row of the input that row `row` of the output is made of; NULL: the constant. */
static const float *input_row(const struct work *w, int64_t row)
{
    int64_t at = 0, stride = w->in.dim[w->axis] * w->each;
    for (int i = w->axis - 1; i >= 0; i--) {
        const int64_t from =
            ew_pad_source(w->mode, row % w->out.dim[i] - w->pads.before[i], w->in.dim[i]);
        if (from < 0)
            return NULL;
        at += from * stride;
        stride *= w->in.dim[i];
        row /= w->out.dim[i];
    }
    return w->x + at;
}

/* Positions [begin, end) of a row, all outside the input. */
static void put_outside(const struct work *w, const float *x, float *y, int64_t begin, int64_t end)
{
    const int64_t n = w->in.dim[w->axis], before = w->pads.before[w->axis];
    if (w->mode == EW_PAD_CONSTANT) {
        fill(y + begin * w->each, w->value, (end - begin) * w->each);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        const int64_t from = ew_pad_source(w->mode, i - before, n);
        memcpy(y + i * w->each, x + from * w->each, (size_t)w->each * sizeof(float));
    }
}

static void tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    const int64_t in = w->in.dim[w->axis], out = w->out.dim[w->axis];
    const int64_t before = w->pads.before[w->axis];
    /* Positions [first, last) are inside the input. */
    const int64_t first = ew_min_i64(ew_max_i64(before, 0), out);
    const int64_t last = ew_max_i64(first, ew_min_i64(before + in, out));
    for (int64_t row = begin * w->grain; row < ew_min_i64(end * w->grain, w->rows); row++) {
        const float *x = input_row(w, row);
        float *y = w->y + row * out * w->each;
        if (!x) {
            fill(y, w->value, out * w->each);
            continue;
        }
        put_outside(w, x, y, 0, first);
        memcpy(y + first * w->each, x + (first - before) * w->each,
               (size_t)((last - first) * w->each) * sizeof(float));
        put_outside(w, x, y, last, out);
    }
}

static ew_err run(const struct ew_call *c)
{
    struct work w;
    EW_CHECK(resolve(c, &w), EW_ERR_INTERNAL, "%s: its pads have changed", c->name);
    w.x = c->in[0]->data;
    w.y = c->out[0]->data;
    ew_pool_run(ew_cpu(c->be)->pool, (w.rows + w.grain - 1) / w.grain, tiles, &w);
    return EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    struct work w;
    if (query->phase != EW_PHASE_FORWARD || c->in[0]->dtype != EW_F32 ||
        ew_tensor_count(c->in[0]) == 0 || ew_tensor_count(c->out[0]) == 0 ||
        !c->in[EW_PAD_PADS]->data || c->in[0]->shape.rank == 0 || !resolve(c, &w))
        return 0;
    out[0] = (struct ew_kernel){.name = "pad", .run = run};
    return 1;
}

const struct ew_kernel_family ew_offer_pad = {.ops = EW_FAMILY_OPS(&ew_op_pad), .offer = offer};
