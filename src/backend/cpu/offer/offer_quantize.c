/* SPDX-License-Identifier: Apache-2.0 */
/* Quantise and dequantise with one scale, and 8-bit lookup tables. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/int8_step.h"
#include "graph/ops.h"

#define GRAIN 16384 /* elements a tile */

enum { X, SCALE, ZERO };

struct work {
    const struct ew_kernels *k;
    struct ew_qfloat f;
    struct ew_qtable table;
    int64_t count;
};

static void quantize_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->quantize_run(&w->f, begin * GRAIN, ew_min_i64(end * GRAIN, w->count));
}

static void dequantize_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->dequantize_run(&w->f, begin * GRAIN, ew_min_i64(end * GRAIN, w->count));
}

static void table_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->int8_table_run(&w->table, begin * GRAIN, ew_min_i64(end * GRAIN, w->count));
}

static ew_err share(const struct ew_call *c, struct work *w, ew_pool_fn *fn)
{
    w->k = ew_cpu(c->be)->isa;
    w->count = ew_tensor_count(c->out[0]);
    ew_pool_run(ew_cpu(c->be)->pool, (w->count + GRAIN - 1) / GRAIN, fn, w);
    return EW_OK;
}

/* Type and zero point of `bytes`. */
static struct ew_qbyte byte_of(const struct ew_call *c, const struct ew_tensor *bytes)
{
    const bool is_signed = bytes->dtype == EW_S8;
    return (struct ew_qbyte){.flip = is_signed ? 0x80 : 0,
                             .zero = (int32_t)ew_quant_zero(ew_call_in(c, ZERO), 0) +
                                     (is_signed ? 128 : 0)};
}

static ew_err run_quantize(const struct ew_call *c)
{
    struct work w = {.f = {.real = c->in[X]->data,
                           .bytes = c->out[0]->data,
                           .scale = (float)ew_tensor_get(c->in[SCALE], 0),
                           .of = byte_of(c, c->out[0])}};
    return share(c, &w, quantize_tiles);
}

static ew_err run_dequantize(const struct ew_call *c)
{
    struct work w = {.f = {.real = c->out[0]->data,
                           .bytes = c->in[X]->data,
                           .scale = (float)ew_tensor_get(c->in[SCALE], 0),
                           .of = byte_of(c, c->in[X])}};
    return share(c, &w, dequantize_tiles);
}

static ew_err run_lookup(const struct ew_call *c)
{
    struct work w = {.table = {.x = c->in[EW_LOOKUP_X]->data,
                               .table = c->in[EW_LOOKUP_TABLE]->data,
                               .y = c->out[0]->data}};
    return share(c, &w, table_tiles);
}

static bool has_one_scale(const struct ew_call *c)
{
    return c->in[SCALE]->shape.rank <= 1 && ew_tensor_count(c->in[SCALE]) == 1 &&
           c->in[SCALE]->dtype == EW_F32;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    const bool to = query->op == &ew_op_quantize_linear;
    if (query->phase != EW_PHASE_FORWARD)
        return 0;
    if (query->op == &ew_op_lookup) {
        out[0] = (struct ew_kernel){.name = "int8 lookup", .run = run_lookup};
        return 1;
    }
    const struct ew_tensor *real = to ? c->in[X] : c->out[0], *bytes = to ? c->out[0] : c->in[X];
    if (real->dtype != EW_F32 || (bytes->dtype != EW_U8 && bytes->dtype != EW_S8) ||
        !has_one_scale(c))
        return 0;
    out[0] = (struct ew_kernel){.name = to ? "quantize" : "dequantize",
                                .run = to ? run_quantize : run_dequantize};
    return 1;
}

const struct ew_kernel_family ew_offer_quantize = {
    .ops = EW_FAMILY_OPS(&ew_op_quantize_linear, &ew_op_dequantize_linear, &ew_op_lookup),
    .offer = offer};
