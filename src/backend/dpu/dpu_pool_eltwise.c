/* SPDX-License-Identifier: Apache-2.0 */
/* The DPU's operators without weights, in loops that compilers vectorise; the arithmetic is defined
 * in op/dpu.h for single values. */
#include <math.h>
#include <string.h>

#include "backend/dpu/dpu_backend.h"
#include "graph/ops.h"
#include "op/dpu.h"

#define CHUNK 16384 /* elements per task */

/* ---- Element-wise addition and product ---- */

/* y = clamp((v << up + half) >> down), v = a * b or the sum of the aligned inputs.  All supported
 * compilers shift int32 arithmetically, so >> is floor division. */
struct binary {
    const int8_t *a, *b;
    int8_t *y;
    int64_t n;
    int64_t image,
        channels;       /* of y, if b has a value per image and channel; image 0: b is like y */
    int a_down, b_down; /* additions: right shifts that align the inputs, which have
                         * EW_DPU_GUARD guard bits */
    int up, down;       /* shifts of the result */
    int32_t lo, hi;
    bool add;
};

static inline int8_t finish(const struct binary *t, int32_t v)
{
    const int32_t half = t->down ? 1 << (t->down - 1) : 0;
    v = (v * (1 << t->up) + half) >> t->down;
    v = v < t->lo ? t->lo : v;
    return (int8_t)(v > t->hi ? t->hi : v);
}

static void add_run(const struct binary *t, const int8_t *a, const int8_t *b, int8_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = finish(t, ((a[i] * (1 << EW_DPU_GUARD)) >> t->a_down) +
                             ((b[i] * (1 << EW_DPU_GUARD)) >> t->b_down));
}

static void mul_run(const struct binary *t, const int8_t *a, const int8_t *b, int8_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = finish(t, a[i] * b[i]);
}

static void binary_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct binary *t = ctx;
    const int64_t step = t->image ? t->channels : CHUNK;
    for (int64_t k = begin; k < end; k++) {
        const int64_t at = k * step, n = t->n - at < step ? t->n - at : step;
        const int8_t *b = t->b + (t->image ? at / t->image * t->channels : at);
        (t->add ? add_run : mul_run)(t, t->a + at, b, t->y + at, n);
    }
}

static int clip_int(int64_t v, int lo, int hi)
{
    return v < lo ? lo : (v > hi ? hi : (int)v);
}

static ew_err run_binary(const struct ew_call *c)
{
    const struct ew_dpu_eltwise_attr *a = c->attr;
    const struct ew_shape *s = &c->out[0]->shape;
    const bool add = c->op == &ew_op_dpu_add;
    const int64_t n = ew_tensor_count(c->out[0]), least = a->a < a->b ? a->a : a->b;
    const int64_t shift = add ? least + EW_DPU_GUARD - a->y : a->a + a->b - a->y;
    const bool like = ew_tensor_count(c->in[1]) == n;
    /* Limits of shifts: left by 14 saturates all but 0, right by 20 leaves 0 or -1 before
     * rounding. */
    struct binary t = {.a = c->in[0]->data,
                       .b = c->in[1]->data,
                       .y = c->out[0]->data,
                       .n = n,
                       .image = like ? 0 : n / s->dim[0],
                       .channels = s->dim[s->rank - 1],
                       .a_down = clip_int(a->a - least, 0, 20),
                       .b_down = clip_int(a->b - least, 0, 20),
                       .up = clip_int(-shift, 0, 14),
                       .down = clip_int(shift, 0, 20),
                       .lo = clip_int(a->clamp.lo, -128, 127),
                       .hi = clip_int(a->clamp.hi, -128, 127),
                       .add = add};
    const int64_t step = like ? CHUNK : t.channels;
    ew_pool_run(ew_cpu(c->be)->pool, (n + step - 1) / step, binary_range, &t);
    return EW_OK;
}

int ew_dpu_offer_eltwise(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    out[0] = (struct ew_kernel){.name = "dpu element-wise", .run = run_binary};
    return 1;
}

/* ---- Average pools ---- */

/* Sums each window per channel, then multiplies by the reciprocal; scratch: a row of sums per
 * thread. */
struct averages {
    struct ew_window w;
    struct ew_dpu_mean mean;
    int shift;
    const int8_t *x;
    int8_t *y;
    int32_t *sums;
};

static void average_pixel(const struct averages *p, int64_t pixel, int32_t *sums)
{
    const struct ew_window *w = &p->w;
    const struct ew_quant_clamp all = {-128, 127};
    const int64_t inside = pixel % (w->out[1] * w->out[2]);
    const int64_t o[EW_WINDOW_DIMS] = {0, inside / w->out[2], inside % w->out[2]};
    struct ew_tap t;
    memset(sums, 0, (size_t)w->channels * sizeof(*sums));
    for (bool more = ew_tap_first(w, pixel / (w->out[1] * w->out[2]), o, &t); more;
         more = ew_tap_next(w, &t)) {
        const int8_t *x = p->x + t.row * w->channels;
        for (int64_t k = 0; k < w->channels; k++)
            sums[k] += x[k];
    }
    for (int64_t k = 0; k < w->channels; k++)
        p->y[pixel * w->channels + k] =
            ew_dpu_store((int64_t)sums[k] * p->mean.factor, p->mean.shift + p->shift, &all);
}

static void average_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct averages *p = ctx;
    for (int64_t k = begin; k < end; k++)
        average_pixel(p, k, p->sums + worker * p->w.channels);
}

static ew_err run_average(const struct ew_call *c)
{
    const struct ew_dpu_pool_attr *a = c->attr;
    struct averages p = {
        .x = c->in[0]->data, .y = c->out[0]->data, .sums = c->scratch, .shift = (int)a->shift};
    EW_TRY(ew_pool_resolve(c, &p.w));
    p.mean = ew_dpu_mean(p.w.kernel[1], p.w.kernel[2]);
    ew_pool_run(ew_cpu(c->be)->pool, p.w.batch * p.w.out[1] * p.w.out[2], average_range, &p);
    return EW_OK;
}

int ew_dpu_offer_pool(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_shape *s = &query->c->out[0]->shape;
    if (s->rank != 4)
        return 0;
    const size_t threads = (size_t)ew_pool_threads(ew_cpu(query->be)->pool);
    out[0] = (struct ew_kernel){.name = "dpu average",
                                .run = run_average,
                                .scratch = threads * (size_t)s->dim[3] * sizeof(int32_t)};
    return 1;
}

/* ---- Host operators ---- */

static ew_err run_input(const struct ew_call *c)
{
    const struct ew_dpu_input_attr *a = c->attr;
    const float *x = c->in[0]->data, scale = ldexpf(1, (int)a->position);
    int8_t *y = c->out[0]->data;
    for (int64_t i = 0; i < ew_tensor_count(c->out[0]); i++) {
        float q = x[i] * scale;
        q = q > -128 ? q : -128; /* maps NaN to -128 as well */
        q = q < 127 ? q : 127;
        const float whole = (float)(int32_t)q, rest = q - whole; /* truncation, exact */
        y[i] = (int8_t)((int32_t)whole + (rest >= 0.5f) - (rest <= -0.5f));
    }
    return EW_OK;
}

int ew_dpu_offer_input(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    out[0] = (struct ew_kernel){.name = "dpu input", .run = run_input};
    return 1;
}
