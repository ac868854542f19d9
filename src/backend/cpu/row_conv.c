/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions on the CPU's kernels: geometry, packing and the split over threads. */
#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/share.h"
#include "op/conv.h"

/* What a step keeps; the packed filters follow at the next cache line. */
struct state {
    struct ew_conv conv;
    int64_t tiles;
};

static float *packed_of(const struct ew_call *c)
{
    return (float *)((char *)c->state + ew_align_up(sizeof(struct state)));
}

static void shape_of(const struct ew_conv_sizes *s, struct ew_conv_shape *out)
{
    *out = (struct ew_conv_shape){.batch = (int32_t)s->w.batch,
                                  .groups = (int32_t)s->groups,
                                  .cin = (int32_t)s->w.channels,
                                  .cout = (int32_t)s->filters};
    for (int i = 0; i < EW_WINDOW_DIMS; i++)
        out->axis[i] = (struct ew_conv_axis){.in = (int32_t)s->w.in[i],
                                             .out = (int32_t)s->w.out[i],
                                             .taps = (int32_t)s->w.kernel[i],
                                             .stride = (int32_t)s->w.stride[i],
                                             .dilation = (int32_t)s->w.dilation[i],
                                             .pad = (int32_t)s->w.pad[i]};
}

static ew_err prepare(const struct ew_call *c)
{
    const struct ew_conv_attr *a = c->attr;
    const struct ew_kernels *k = c->be->isa;
    struct state *st = c->state;
    struct ew_conv_sizes s;
    EW_TRY(ew_conv_resolve(c, &s));
    shape_of(&s, &st->conv.shape);
    st->conv.w = packed_of(c);
    st->conv.end = (struct ew_epilogue){.add_after = a->end.add_after,
                                        .act = (enum ew_act)a->end.act,
                                        .lo = (float)a->end.lo,
                                        .hi = (float)a->end.hi};
    st->tiles = k->conv_tiles(&st->conv.shape);
    k->conv_pack(&st->conv.shape, c->in[1]->data, packed_of(c));
    return EW_OK;
}

static void run_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct state *st = c->state;
    const struct ew_kernels *k = c->be->isa;
    k->conv_run(&st->conv, begin, end,
                ew_worker_scratch(c, k->conv_scratch(&st->conv.shape), worker));
}

static ew_err run(const struct ew_call *c)
{
    struct state *st = c->state;
    st->conv.x = c->in[0]->data;
    st->conv.y = c->out[0]->data;
    st->conv.end.bias = c->n_in > 2 && c->in[2] ? c->in[2]->data : NULL;
    st->conv.end.add = c->n_in > 3 && c->in[3] ? c->in[3]->data : NULL;
    if (c->train) /* the weights have moved since the last step */
        c->be->isa->conv_pack(&st->conv.shape, c->in[1]->data, packed_of(c));
    ew_share_run(c, st->tiles, run_tiles);
    return EW_OK;
}

static int offer(const struct ew_backend *be, enum ew_phase phase, const struct ew_call *c,
                 struct ew_kernel *out)
{
    struct ew_conv_sizes s;
    struct ew_conv_shape shape;
    if (phase != EW_PHASE_FORWARD || c->in[0]->dtype != EW_F32 || ew_conv_resolve(c, &s) != EW_OK ||
        ew_tensor_count(c->out[0]) >= INT32_MAX || ew_tensor_count(c->in[0]) >= INT32_MAX)
        return 0;
    shape_of(&s, &shape);
    out[0] = (struct ew_kernel){.name = "conv",
                                .run = run,
                                .prepare = prepare,
                                .scratch = ew_share_scratch(be, be->isa->conv_scratch(&shape)),
                                .state = ew_align_up(sizeof(struct state)) +
                                         be->isa->conv_pack_size(&shape) * sizeof(float)};
    return 1;
}

const struct ew_row ew_row_conv = {.op = "conv", .offer = offer};
