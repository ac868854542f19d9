/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of 8-bit convolutions and dense layers. */
#include "backend/cpu/step/int8_step.h"
#include "backend/cpu/cpu_backend.h"

#include <math.h>
#include <stdlib.h>

#include "backend/cpu/parallel.h"

struct step {
    struct ew_conv_shape shape;
    struct ew_qconv conv;
    enum ew_qlayer_method method;
};

/* One function of the table by method. */
#define BY_METHOD(k, what)                                                                         \
    {                                                                                              \
        [EW_QLAYER_GEMM] = (k)->int8_gemm_##what,                                                  \
        [EW_QLAYER_DEPTHWISE] = (k)->int8_depthwise_##what,                                        \
        [EW_QLAYER_DEPTHWISE_COLUMN] = (k)->int8_depthwise_column_##what,                          \
        [EW_QLAYER_GROUPED] = (k)->int8_grouped_##what,                                            \
        [EW_QLAYER_WINOGRAD] = (k)->int8_winograd_##what                                           \
    }

static size_t scratch_of(const struct ew_kernels *k, enum ew_qlayer_method m,
                         const struct ew_conv_shape *s)
{
    size_t (*const scratch[])(const struct ew_conv_shape *) = BY_METHOD(k, scratch);
    return scratch[m](s);
}

/* ---- Reading inputs ---- */

struct ew_qbyte ew_qbyte_of(const struct ew_call *c, int like, int zero)
{
    const struct ew_tensor *z = ew_call_in(c, zero);
    const bool is_signed = c->in[like]->dtype == EW_S8;
    return (struct ew_qbyte){.flip = is_signed ? 0x80 : 0,
                             .zero = (int32_t)ew_quant_zero(z, 0) + (is_signed ? 128 : 0)};
}

void ew_qclamp_of(const struct ew_quant_clamp *clamp, const struct ew_qbyte *y, int32_t *lo,
                  int32_t *hi)
{
    const int64_t offset = y->flip ? 128 : 0;
    *lo = (int32_t)ew_max_i64(clamp->lo + offset, 0);
    *hi = (int32_t)ew_min_i64(clamp->hi + offset, 255);
}

bool ew_qknown(const struct ew_call *c, int slot)
{
    const struct ew_tensor *t = ew_call_in(c, slot);
    return !t || t->data;
}

/* Filters are int8 with zero point 0, or uint8 with zero point 128, which is equivalent. */
static bool is_symmetric(const struct ew_call *c)
{
    const struct ew_tensor *w = c->in[EW_QCONV_W], *zero = ew_call_in(c, EW_QCONV_W_ZERO);
    const int64_t middle = w->dtype == EW_U8 ? 128 : 0;
    if (!zero)
        return middle == 0;
    for (int64_t i = 0; i < ew_tensor_count(zero); i++)
        if (ew_tensor_get_int(zero, i) != middle)
            return false;
    return true;
}

static float ratio_at(const struct ew_call *c, const struct ew_qlayer *l, int64_t i)
{
    const struct ew_tensor *y = ew_call_in(c, l->y_scale);
    return ew_quant_ratio(ew_tensor_get(c->in[EW_QCONV_X_SCALE], 0),
                          ew_quant_scale(c->in[EW_QCONV_W_SCALE], i), y ? ew_tensor_get(y, 0) : 1);
}

/* An int32 sum times the ratio must be a finite float. */
static bool is_sane(float ratio)
{
    return fabsf(ratio) < 0x1p60f; /* false for NaN */
}

/* With ratios below 1, a scaled int32 sum rounds to an int32. */
static bool ratios_below_1(const struct ew_call *c, const struct ew_qlayer *l)
{
    for (int64_t i = 0; i < ew_tensor_count(c->in[EW_QCONV_W_SCALE]); i++)
        if (!(fabsf(ratio_at(c, l, i)) < 1))
            return false;
    return true;
}

bool ew_qlayer_fits(const struct ew_call *c, const struct ew_qlayer *l)
{
    for (int i = 0; i < c->n_in; i++)
        if (i != EW_QCONV_X && i != EW_QCONV_ADD && !ew_qknown(c, i))
            return false;
    if (!is_symmetric(c) || ew_tensor_count(c->in[EW_QCONV_X]) >= INT32_MAX ||
        ew_tensor_count(c->in[EW_QCONV_X]) == 0)
        return false;
    for (int64_t i = 0; i < l->shape.cout; i++)
        if (!is_sane(ratio_at(c, l, i)))
            return false;
    return true;
}

bool ew_qlayer_end_is_plain(const struct ew_call *c, const struct ew_qlayer *l)
{
    return ew_call_in(c, l->y_scale) && !ew_call_in(c, EW_QCONV_ADD) && ratios_below_1(c, l);
}

/* ---- Epilogues ---- */

static void set_end(const struct ew_call *c, const struct ew_qlayer *l, struct ew_qend *e)
{
    const struct ew_tensor *table = ew_call_in(c, EW_QCONV_TABLE);
    *e = (struct ew_qend){.to_float = !ew_call_in(c, l->y_scale),
                          .ratios_below_1 = ratios_below_1(c, l)};
    if (e->to_float)
        return;
    e->y = ew_qbyte_of(c, l->y_zero, l->y_zero);
    if (ew_call_in(c, EW_QCONV_ADD)) {
        const double sum = ew_tensor_get(c->in[EW_QCONV_SUM_SCALE], 0);
        e->mid = e->y;
        e->y = ew_qbyte_of(c, EW_QCONV_SUM_ZERO, EW_QCONV_SUM_ZERO);
        e->of_add = ew_qbyte_of(c, EW_QCONV_ADD, EW_QCONV_ADD_ZERO);
        e->mid_ratio = ew_quant_ratio(ew_tensor_get(c->in[l->y_scale], 0), 1, sum);
        e->add_ratio = ew_quant_ratio(ew_tensor_get(c->in[EW_QCONV_ADD_SCALE], 0), 1, sum);
    }
    ew_qclamp_of(&l->clamp, &e->y, &e->lo, &e->hi);
    e->table = table ? table->data : NULL;
}

ew_err ew_qlayer_prepare(const struct ew_call *c, const struct ew_qlayer *l,
                         enum ew_qlayer_method m)
{
    struct step *p = c->state;
    *p = (struct step){.shape = l->shape, .method = m};
    p->conv = (struct ew_qconv){.shape = &p->shape,
                                .of_x = ew_qbyte_of(c, EW_QCONV_X, EW_QCONV_X_ZERO),
                                .packed = c->packed};
    set_end(c, l, &p->conv.end);
    return EW_OK;
}

/* ---- Packing ---- */

struct packing {
    const struct ew_call *c;
    const struct ew_conv_shape *shape;
    struct ew_qconv_weights weights;
};

static void pack_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct packing *p = ctx;
    ew_cpu(p->c->be)->isa->int8_gemm_pack(p->shape, &p->weights, p->c->packed, begin, end);
}

static void pack_wino_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct packing *p = ctx;
    ew_cpu(p->c->be)->isa->int8_winograd_pack(p->shape, &p->weights, p->c->packed, begin, end);
}

ew_err ew_qlayer_pack(const struct ew_call *c, const struct ew_qlayer *l)
{
    const struct ew_tensor *bias = ew_call_in(c, l->bias);
    EW_CLEANUP(ew_free_ptr) float *ratio = calloc((size_t)l->shape.cout + 1, sizeof(*ratio));
    EW_CHECK(ratio, EW_ERR_MEMORY, "%s: no memory to pack its weights", c->name);
    for (int64_t i = 0; i < l->shape.cout; i++)
        ratio[i] = ratio_at(c, l, i);
    struct packing p = {.c = c,
                        .shape = &l->shape,
                        .weights = {.w = c->in[EW_QCONV_W]->data,
                                    .by_row = l->by_row,
                                    .flip = c->in[EW_QCONV_W]->dtype == EW_U8 ? 0x80 : 0,
                                    .of_x = ew_qbyte_of(c, EW_QCONV_X, EW_QCONV_X_ZERO),
                                    .bias = bias ? bias->data : NULL,
                                    .ratio = ratio}};
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    const enum ew_qlayer_method method = ((const struct step *)c->state)->method;
    if (method == EW_QLAYER_DEPTHWISE)
        k->int8_depthwise_pack(&l->shape, &p.weights, c->packed);
    else if (method == EW_QLAYER_DEPTHWISE_COLUMN)
        k->int8_depthwise_column_pack(&l->shape, &p.weights, c->packed);
    else if (method == EW_QLAYER_GROUPED)
        k->int8_grouped_pack(&l->shape, &p.weights, c->packed);
    else if (method == EW_QLAYER_WINOGRAD)
        ew_pool_run(ew_cpu(c->be)->pool, k->int8_winograd_pack_tiles(&l->shape), pack_wino_tiles,
                    &p);
    else
        ew_pool_run(ew_cpu(c->be)->pool, k->int8_gemm_pack_tiles(&l->shape), pack_tiles, &p);
    return EW_OK;
}

/* ---- Runs ---- */

static void conv_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct step *p = c->state;
    void (*const run[])(const struct ew_qconv *, int64_t, int64_t, void *) =
        BY_METHOD(ew_cpu(c->be)->isa, run);
    void *scratch =
        ew_thread_scratch(c, scratch_of(ew_cpu(c->be)->isa, p->method, &p->shape), worker);
    run[p->method](&p->conv, begin, end, scratch);
}

static ew_err run(const struct ew_call *c)
{
    struct step *p = c->state;
    const struct ew_tensor *add = ew_call_in(c, EW_QCONV_ADD);
    int64_t (*const tiles[])(const struct ew_conv_shape *) = BY_METHOD(ew_cpu(c->be)->isa, tiles);
    p->conv.x = c->in[EW_QCONV_X]->data;
    p->conv.y = c->out[0]->data;
    p->conv.end.add = add ? add->data : NULL;
    ew_parallel_for(c, tiles[p->method](&p->shape), conv_tiles);
    return EW_OK;
}

struct ew_kernel ew_qlayer_kernel(const struct ew_call *c, const struct ew_qlayer *l,
                                  enum ew_qlayer_method m)
{
    static const char *const names[] = {[EW_QLAYER_GEMM] = "int8 implicit gemm",
                                        [EW_QLAYER_DEPTHWISE] = "int8 depthwise",
                                        [EW_QLAYER_DEPTHWISE_COLUMN] = "int8 depthwise columns",
                                        [EW_QLAYER_GROUPED] = "int8 grouped",
                                        [EW_QLAYER_WINOGRAD] = "int8 winograd"};
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    size_t (*const packed[])(const struct ew_conv_shape *) = BY_METHOD(k, pack_size);
    return (struct ew_kernel){.name = names[m],
                              .run = run,
                              .scratch =
                                  ew_thread_scratch_bytes(c->be, scratch_of(k, m, &l->shape)),
                              .state = sizeof(struct step),
                              .packed = packed[m](&l->shape),
                              .packs = 1u << EW_QCONV_W};
}
