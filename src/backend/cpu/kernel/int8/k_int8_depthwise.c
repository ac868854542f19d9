/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit depthwise convolution of any shape.  Lanes are channels; two taps at a time form a word of
 * int16 (x86), or taps are added one by one (NEON). */
#include "backend/cpu/kernel/int8/int8_depthwise.h"

bool EW_K(int8_depthwise_fits)(const struct ew_conv_shape *s)
{
    return s->groups == s->cin && s->cin == s->cout;
}

static int64_t padded_channels(const struct ew_conv_shape *s)
{
    return div_up(s->cin, WIDE) * WIDE;
}

static int64_t pairs_of(const struct ew_conv_shape *s)
{
    return div_up(qdepth_taps(s), 2);
}

/* Packed: ratio [channels], bias [channels], weights [block of WIDE][pair of
 * taps][vector][lane][2], with channels rounded up and in the order of column_of within a block. */
size_t EW_K(int8_depthwise_pack_size)(const struct ew_conv_shape *s)
{
    return (size_t)(padded_channels(s) * (pairs_of(s) + 2)) * sizeof(int32_t);
}

/* Index of the weight of tap t in the block, for lane l of vector v. */
static int64_t weight_at(int64_t t, int v, int l)
{
#if defined(EW_ISA_IS_neon)
    return t / 2 * 2 * WIDE + t % 2 * WIDE + v * LANES + l;
#else
    return (t / 2 * WIDE + v * LANES + l) * 2 + t % 2;
#endif
}

static void pack_channel(const struct ew_conv_shape *s, const struct ew_qconv_weights *w,
                         void *packed, int64_t lane)
{
    const int64_t wide = padded_channels(s), taps = qdepth_taps(s), block = lane / WIDE;
    const int v = (int)(lane % WIDE / LANES), l = (int)(lane % LANES);
    const int64_t c = block * WIDE + column_of(v, l);
    const bool exists = c < s->cin;
    int16_t *weights = (int16_t *)((int32_t *)packed + 2 * wide) + block * pairs_of(s) * 2 * WIDE;
    uint32_t sum = 0;
    for (int64_t t = 0; t < pairs_of(s) * 2; t++) {
        const bool tap = exists && t < taps;
        const int value = tap ? (int8_t)(w->w[c * taps + t] ^ w->flip) : 0;
        weights[weight_at(t, v, l)] = (int16_t)value;
        sum += (uint32_t)value;
    }
    ((float *)packed)[lane] = exists ? w->ratio[c] : 0;
    const uint32_t start = (uint32_t)(w->bias && exists ? w->bias[c] : 0);
    ((int32_t *)packed)[wide + lane] = (int32_t)(start - (uint32_t)w->of_x.zero * sum);
}

void EW_K(int8_depthwise_pack)(const struct ew_conv_shape *s, const struct ew_qconv_weights *w,
                               void *packed)
{
    for (int64_t lane = 0; lane < padded_channels(s); lane++)
        pack_channel(s, w, packed, lane);
}

int64_t EW_K(int8_depthwise_tiles)(const struct ew_conv_shape *s)
{
    return s->axis[2].out ? (int64_t)s->batch * s->axis[0].out * s->axis[1].out : 0;
}

size_t EW_K(int8_depthwise_scratch)(const struct ew_conv_shape *s)
{
    return qlines_bytes(s) + (size_t)(qdepth_taps(s) + 1) * sizeof(uint8_t *);
}

struct sum_pair {
    vint a, b;
};

/* sum += x * weights of one tap + y * weights of the next. */
INLINE void add_pair(struct sum_pair *sum, v16 x, v16 y, const int16_t *w)
{
#if defined(EW_ISA_IS_avx512)
    const __m512i low = _mm512_unpacklo_epi16((__m512i)x, (__m512i)y);
    const __m512i high = _mm512_unpackhi_epi16((__m512i)x, (__m512i)y);
    sum->a += (vint)_mm512_madd_epi16(low, _mm512_loadu_si512(w));
    sum->b += (vint)_mm512_madd_epi16(high, _mm512_loadu_si512(w + WIDE));
#elif defined(EW_ISA_IS_avx2)
    const __m256i low = _mm256_unpacklo_epi16((__m256i)x, (__m256i)y);
    const __m256i high = _mm256_unpackhi_epi16((__m256i)x, (__m256i)y);
    sum->a += (vint)_mm256_madd_epi16(low, _mm256_loadu_si256((const void *)w));
    sum->b += (vint)_mm256_madd_epi16(high, _mm256_loadu_si256((const void *)(w + WIDE)));
#elif defined(__SSE2__)
    const __m128i low = _mm_unpacklo_epi16((__m128i)x, (__m128i)y);
    const __m128i high = _mm_unpackhi_epi16((__m128i)x, (__m128i)y);
    sum->a += (vint)_mm_madd_epi16(low, _mm_loadu_si128((const void *)w));
    sum->b += (vint)_mm_madd_epi16(high, _mm_loadu_si128((const void *)(w + WIDE)));
#elif defined(EW_ISA_IS_neon)
    const int16x8_t p = vld1q_s16(w), q = vld1q_s16(w + WIDE);
    const int16x8_t s = (int16x8_t)x, t = (int16x8_t)y;
    int32x4_t a = vmlal_s16((int32x4_t)sum->a, vget_low_s16(s), vget_low_s16(p));
    int32x4_t b = vmlal_s16((int32x4_t)sum->b, vget_high_s16(s), vget_high_s16(p));
    sum->a = (vint)vmlal_s16(a, vget_low_s16(t), vget_low_s16(q));
    sum->b = (vint)vmlal_s16(b, vget_high_s16(t), vget_high_s16(q));
#else
    for (int l = 0; l < LANES; l++) {
        sum->a[l] += x[l] * w[2 * l] + y[l] * w[2 * l + 1];
        sum->b[l] += x[LANES + l] * w[2 * (LANES + l)] + y[LANES + l] * w[2 * (LANES + l) + 1];
    }
#endif
}

/* Form of a pixel's loop: constants for common shapes. */
struct form {
    int64_t pairs; /* pairs of taps */
    bool flips;    /* x is int8 */
};

/* Loads n bytes; following bytes up to `end` may be loaded too, since their weights are 0. */
INLINE v16 load_tap(const uint8_t *p, int64_t n, uintptr_t end, vbytes flip)
{
    if (n < WIDE && (uintptr_t)p + WIDE <= end)
        n = WIDE;
    return widen(load_bytes(p, n) ^ flip);
}

/* Sums of channels [c, c + n) of one pixel; `at` lists its taps, padded to an even number. */
INLINE struct sum_pair sum_taps(const struct ew_qconv *q, const uint8_t *const *at, int64_t c,
                                int64_t n, const struct form f)
{
    const int64_t pairs = f.pairs;
    const int64_t wide = padded_channels(q->shape);
    const int32_t *packed = q->packed;
    const int16_t *w = (const int16_t *)(packed + 2 * wide) + c * pairs * 2;
    const struct ew_conv_shape *s = q->shape;
    const struct ew_conv_axis *a = s->axis;
    const int64_t pixels = (int64_t)s->batch * a[0].in * a[1].in * a[2].in;
    const uintptr_t end = (uintptr_t)(q->x + pixels * s->cin);
    const vbytes flip = f.flips ? q->of_x.flip - (vbytes){0} : (vbytes){0};
    struct sum_pair sum = {load_int(packed + wide + c), load_int(packed + wide + c + LANES)};
    UNROLL
    for (int64_t i = 0; i < pairs; i++, w += 2 * WIDE)
        add_pair(&sum, load_tap(at[2 * i] + c, n, end, flip),
                 load_tap(at[2 * i + 1] + c, n, end, flip), w);
    return sum;
}

/* One output pixel, all channels. */
struct qpixel {
    const struct ew_qconv *q;
    const uint8_t *const *taps;
    bool plain;
    struct qplain p;
    int64_t y; /* offset of its outputs */
};

INLINE void run_wide(const struct qpixel *x, int64_t c, int64_t n, const struct form f)
{
    const struct ew_qconv *q = x->q;
    const float *ratio = (const float *)q->packed + c;
    const struct sum_pair sum = sum_taps(q, x->taps, c, n, f);
    if (x->plain) {
        const v16 bytes =
            narrow2(requantize(sum.a, load(ratio)), requantize(sum.b, load(ratio + LANES)));
        store_bytes((uint8_t *)q->y + x->y + c, plain_bytes(bytes, &x->p), n);
        return;
    }
    const int64_t y = x->y + c;
    const struct qmicro m = {.end = &q->end,
                             .ratio = ratio,
                             .y = q->end.to_float ? (void *)((float *)q->y + y)
                                                  : (void *)((uint8_t *)q->y + y),
                             .add = q->end.add ? q->end.add + y : NULL,
                             .width = n};
    const vint sums[SIDE] = {sum.a, sum.b};
    EW_K(qfinish)(&m, sums, 1, SIDE);
}

INLINE void run_pixel(const struct qpixel *x, const struct form f)
{
    const int64_t channels = x->q->shape->cin;
    int64_t c = 0;
    for (; c + WIDE <= channels; c += WIDE)
        run_wide(x, c, WIDE, f);
    if (c < channels)
        run_wide(x, c, channels - c, f);
}

/* Lists the taps of output o in the order of the filter, and the last one again: with an odd
 * number, the repeated tap has weights of 0. */
static void find_taps(const struct qlines *l, const struct ew_conv_axis *a, int64_t o,
                      const uint8_t **taps)
{
    for (int64_t line = 0; line < l->lines; line++)
        for (int64_t t = 0; t < a->taps; t++)
            *taps++ = l->at[line * l->columns + o * a->stride + t * a->dilation];
    taps[0] = taps[-1];
}

void EW_K(int8_depthwise_run)(const struct ew_qconv *q, int64_t begin, int64_t end, void *scratch)
{
    const struct ew_conv_shape *s = q->shape;
    const struct ew_qend *e = &q->end;
    const int64_t out = s->axis[2].out, pairs = pairs_of(s);
    const uint8_t **taps = (const uint8_t **)(void *)((char *)scratch + qlines_bytes(s));
    struct qpixel x = {.q = q,
                       .taps = taps,
                       .plain = e->ratios_below_1 && !e->add && !e->table && !e->to_float,
                       .p = plain_of(e)};
    const bool flips = q->of_x.flip != 0;
    struct qlines l;
    qlines_init(&l, q, scratch);
    for (int64_t row = begin; row < end; row++) {
        qlines_find(&l, q, row);
        for (int64_t o = 0; o < out; o++) {
            find_taps(&l, &s->axis[2], o, taps);
            x.y = (row * out + o) * s->cout;
            if (pairs == 5 && !flips) /* 3x3 */
                run_pixel(&x, (struct form){5, false});
            else if (pairs == 13 && !flips) /* 5x5 */
                run_pixel(&x, (struct form){13, false});
            else
                run_pixel(&x, (struct form){pairs, true});
        }
    }
}
