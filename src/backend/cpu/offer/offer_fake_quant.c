/* SPDX-License-Identifier: Apache-2.0 */
/* Fake quantisation: quantise and dequantise by way of a small buffer of bytes.  Its gradient is
 * that of a clip (straight-through estimator). */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/int8_step.h"
#include "graph/ops.h"

#define GRAIN 16384 /* elements a tile */
#define CHUNK 2048  /* bytes of that buffer, which stays in L1 */

enum { X, SCALE, ZERO };

struct work {
    const struct ew_kernels *k;
    float *x, *y;
    struct ew_qfloat f; /* scale and zero point */
    struct ew_act_map back;
    int64_t count;
};

static void forward_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    uint8_t bytes[CHUNK];
    const int64_t last = ew_min_i64(end * GRAIN, w->count);
    for (int64_t at = begin * GRAIN; at < last; at += CHUNK) {
        const int64_t n = ew_min_i64(CHUNK, last - at);
        struct ew_qfloat f = w->f;
        f.bytes = bytes;
        f.real = w->x + at;
        w->k->quantize_run(&f, 0, n);
        f.real = w->y + at;
        w->k->dequantize_run(&f, 0, n);
    }
}

static void backward_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->act_back(&w->back, begin * GRAIN, ew_min_i64(end * GRAIN, w->count));
}

static ew_err run_forward(const struct ew_call *c)
{
    const bool is_signed = c->in[ZERO]->dtype == EW_S8;
    struct work w = {
        .k = ew_cpu(c->be)->isa,
        .x = c->in[X]->data,
        .y = c->out[0]->data,
        .f = {.scale = (float)ew_tensor_get(c->in[SCALE], 0),
              .of = {.flip = is_signed ? 0x80 : 0,
                     .zero = (int32_t)ew_tensor_get_int(c->in[ZERO], 0) + (is_signed ? 128 : 0)}},
        .count = ew_tensor_count(c->in[X])};
    ew_pool_run(ew_cpu(c->be)->pool, (w.count + GRAIN - 1) / GRAIN, forward_tiles, &w);
    return EW_OK;
}

static ew_err run_backward(const struct ew_call *c)
{
    double lo, hi;
    if (!c->din[X] || !c->dout[0])
        return EW_OK;
    ew_fake_quant_range(c, &lo, &hi);
    struct work w = {.k = ew_cpu(c->be)->isa,
                     .back = {.act = EW_ACT_CLIP,
                              .lo = (float)lo,
                              .hi = (float)hi,
                              .x = c->in[X]->data,
                              .dy = c->dout[0]->data,
                              .dx = c->din[X]->data,
                              .add = !(c->fresh & 1)},
                     .count = ew_tensor_count(c->din[X])};
    ew_pool_run(ew_cpu(c->be)->pool, (w.count + GRAIN - 1) / GRAIN, backward_tiles, &w);
    return EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    if (query->c->in[X]->dtype != EW_F32 || query->c->in[SCALE]->dtype != EW_F32)
        return 0;
    const bool forward = query->phase == EW_PHASE_FORWARD;
    out[0] = (struct ew_kernel){.name = "fake quantize",
                                .run = forward ? run_forward : run_backward,
                                .fresh = true,
                                .in_place = !forward};
    return 1;
}

const struct ew_kernel_family ew_offer_fake_quant = {.ops = EW_FAMILY_OPS(&ew_op_fake_quant),
                                                     .offer = offer};
