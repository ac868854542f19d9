/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit depthwise convolution of any shape, tap by tap.  Lanes are channels.  Sums are kept as
 * floats, which is exact: a product is below 2^15 and there are less than 2^9 of them. */
#include "backend/cpu/kernel/qdepth.h"

#define MOST_TAPS 512

bool EW_K(qdepth_fits)(const struct ew_conv_shape *s)
{
    return s->groups == s->cin && s->cin == s->cout && qdepth_taps(s) <= MOST_TAPS;
}

static int64_t wide_of(const struct ew_conv_shape *s)
{
    return div_up(s->cin, LANES) * LANES;
}

/* ratio [channels], bias [channels], weights [taps][channels] as floats, channels rounded up. */
size_t EW_K(qdepth_pack_size)(const struct ew_conv_shape *s)
{
    return (size_t)(wide_of(s) * (qdepth_taps(s) + 2)) * sizeof(float);
}

void EW_K(qdepth_pack)(const struct ew_conv_shape *s, const struct ew_qconv_weights *w,
                       void *packed)
{
    const int64_t wide = wide_of(s), taps = qdepth_taps(s);
    float *ratio = packed, *weights = ratio + 2 * wide;
    int32_t *bias = (int32_t *)packed + wide;
    for (int64_t c = 0; c < wide; c++) {
        int32_t sum = 0;
        for (int64_t t = 0; t < taps; t++) {
            const int value = c < s->cin ? (int8_t)(w->w[c * taps + t] ^ w->flip) : 0;
            weights[t * wide + c] = (float)value;
            sum += value;
        }
        ratio[c] = c < s->cin ? w->ratio[c] : 0;
        const uint32_t start = (uint32_t)(w->bias && c < s->cin ? w->bias[c] : 0);
        bias[c] = (int32_t)(start - (uint32_t)w->of_x.zero * (uint32_t)sum);
    }
}

int64_t EW_K(qdepth_tiles)(const struct ew_conv_shape *s)
{
    return s->axis[2].out ? (int64_t)s->batch * s->axis[0].out * s->axis[1].out : 0;
}

size_t EW_K(qdepth_scratch)(const struct ew_conv_shape *s)
{
    return qlines_bytes(s);
}

INLINE vec multiply_add(vec a, vec b, vec sum)
{
#if defined(EW_ISA_IS_avx512)
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
#elif defined(EW_ISA_IS_avx2)
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
#elif defined(EW_ISA_IS_neon)
    return (vec)vfmaq_f32((float32x4_t)sum, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + sum;
#endif
}

/* One vector of channels of one pixel: the sum over its taps. */
INLINE vint sum_taps(const struct ew_qconv *q, const struct qlines *l, int64_t o, const float *w,
                     int64_t n)
{
    const struct ew_conv_axis *a = &q->shape->axis[2];
    const int64_t wide = wide_of(q->shape);
    const vbytes flip = q->of_x.flip - (vbytes){0};
    const uint8_t *const *at = l->at + o * a->stride;
    const int64_t c = w - ((const float *)q->packed + 2 * wide);
    vec sum = {0};
    for (int64_t line = 0; line < l->lines; line++, at += l->columns)
        for (int64_t t = 0; t < a->taps; t++, w += wide) {
            const v16 x = widen(load_bytes(at[t * a->dilation] + c, n) ^ flip);
            sum = multiply_add(to_float(widen_one(x)), load(w), sum);
        }
    return round_int(sum);
}

void EW_K(qdepth_run)(const struct ew_qconv *q, int64_t begin, int64_t end, void *scratch)
{
    const struct ew_conv_shape *s = q->shape;
    const int64_t wide = wide_of(s), out = s->axis[2].out;
    const float *ratio = q->packed;
    const int32_t *bias = (const int32_t *)q->packed + wide;
    struct qmicro m = {.end = &q->end, .y_step = s->cout};
    struct qlines l;
    qlines_init(&l, q, scratch);
    for (int64_t row = begin; row < end; row++) {
        qlines_find(&l, q, row);
        for (int64_t o = 0; o < out; o++)
            for (int64_t c = 0; c < s->cin; c += LANES) {
                const int64_t y = (row * out + o) * s->cout + c;
                m.width = min_i64(LANES, s->cin - c);
                m.ratio = ratio + c;
                m.y = q->end.to_float ? (void *)((float *)q->y + y) : (void *)((uint8_t *)q->y + y);
                m.add = q->end.add ? q->end.add + y : NULL;
                vint sums[SIDE] = {{0}};
                sums[0] = load_int(bias + c) + sum_taps(q, &l, o, ratio + 2 * wide + c, m.width);
                EW_K(qfinish)(&m, sums, 1);
            }
    }
}
