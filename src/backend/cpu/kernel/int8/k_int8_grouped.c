/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit convolutions of many small groups, with VNNI: 4, 8 or 16 channels in and as many out.
 *
 * Sixteen output channels read sixteen input channels, whatever the size of the groups.  Those are
 * four words, loaded into each 128-bit part of a vector; lane l of 16 then takes word
 * l / each * (each / 4) + j of them for j in [0, each / 4), and is multiplied with its own weights.
 * As in k_int8_depthwise_column.c a pixel is loaded once for all outputs of a row whose windows it
 * is in. */
#include "backend/cpu/kernel/int8/int8_depthwise.h"

#if defined(EW_ISA_IS_avx512vnni)

#define BLOCK  16 /* channels */
#define TAPS   3
#define PIXELS 7 /* outputs at once */

bool EW_K(int8_grouped_fits)(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    const int64_t each = s->cin / s->groups;
    return s->cin == s->cout && (each == 4 || each == 8 || each == 16) && s->cin % BLOCK == 0 &&
           a[0].taps == 1 && a[1].taps == TAPS && a[2].taps == TAPS && a[2].dilation == 1 &&
           a[2].stride <= 2;
}

static int64_t each_of(const struct ew_conv_shape *s)
{
    return s->cin / s->groups;
}

/* Words of one block: ratio and bias, then [row][column][word][LANES]. */
static int64_t block_words(const struct ew_conv_shape *s)
{
    return BLOCK * (2 + TAPS * TAPS * each_of(s) / 4);
}

size_t EW_K(int8_grouped_pack_size)(const struct ew_conv_shape *s)
{
    return (size_t)(s->cin / BLOCK * block_words(s)) * sizeof(int32_t);
}

void EW_K(int8_grouped_pack)(const struct ew_conv_shape *s, const struct ew_qconv_weights *w,
                             void *packed)
{
    const int64_t each = each_of(s), size = TAPS * TAPS * each;
    for (int64_t o = 0; o < s->cout; o++) {
        int32_t *words = (int32_t *)packed + o / BLOCK * block_words(s);
        int8_t *bytes = (int8_t *)(words + 2 * BLOCK);
        uint32_t sum = 0;
        for (int64_t k = 0; k < size; k++) { /* tap, then channel */
            const int value = (int8_t)(w->w[o * size + k] ^ w->flip);
            bytes[(k / 4 * LANES + o % BLOCK) * 4 + k % 4] = (int8_t)value;
            sum += (uint32_t)value;
        }
        memcpy(words + o % BLOCK, &w->ratio[o], sizeof(float));
        const uint32_t start = (uint32_t)(w->bias ? w->bias[o] : 0);
        words[BLOCK + o % BLOCK] = (int32_t)(start - (uint32_t)w->of_x.zero * sum);
    }
}

int64_t EW_K(int8_grouped_tiles)(const struct ew_conv_shape *s)
{
    return EW_K(int8_depthwise_tiles)(s);
}

size_t EW_K(int8_grouped_scratch)(const struct ew_conv_shape *s)
{
    return qlines_bytes(s);
}

/* Some outputs of one row, one block of channels. */
struct span {
    const uint8_t *const *at; /* of the first output's first tap, first line */
    int64_t columns;          /* between lines */
    const int32_t *words;     /* of the block */
    int64_t c;
    struct qmicro m;
};

/* Which word of its 128-bit part lane l takes for word j of a group. */
INLINE __m512i permutation_of(const int each, const int j)
{
    int32_t at[LANES];
    UNROLL
    for (int l = 0; l < LANES; l++)
        at[l] = l / each * (each / 4) + j;
    return _mm512_loadu_si512(at);
}

INLINE void span_fixed(const struct span *s, const int each, const int stride, const int pixels)
{
    const int words = each / 4, reach = (pixels - 1) * stride + TAPS;
    vint sum[PIXELS][SIDE];
    UNROLL
    for (int p = 0; p < pixels; p++)
        sum[p][0] = load_int(s->words + BLOCK);
    UNROLL
    for (int r = 0; r < TAPS; r++) {
        const int32_t *w = s->words + (2 + r * TAPS * words) * BLOCK;
        UNROLL
        for (int column = 0; column < reach; column++) {
            const uint8_t *from = s->at[r * s->columns + column] + s->c;
            const __m512i x = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)from));
            UNROLL
            for (int j = 0; j < words; j++) {
                const __m512i permuted =
                    (__m512i)_mm512_permutevar_ps((__m512)x, permutation_of(each, j));
                UNROLL
                for (int p = 0; p < pixels; p++) {
                    const int t = column - p * stride;
                    if (t >= 0 && t < TAPS)
                        sum[p][0] =
                            dot(sum[p][0], (vint)permuted, load_int(w + (t * words + j) * LANES));
                }
            }
        }
    }
    vint out[PIXELS][SIDE];
    UNROLL
    for (int p = 0; p < pixels; p++)
        out[p][0] = sum[p][0];
    EW_K(qfinish)(&s->m, out[0], pixels, 1);
}

/* clang-format off */
#define SPAN(each, stride)                                                                         \
    static void span_##each##_##stride(const struct span *s, int pixels)                           \
    {                                                                                              \
        if (pixels == PIXELS)                                                                      \
            span_fixed(s, each, stride, PIXELS);                                                   \
        else                                                                                       \
            span_fixed(s, each, stride, 1);                                                        \
    }
/* clang-format on */

SPAN(4, 1)
SPAN(4, 2)
SPAN(8, 1)
SPAN(8, 2)
SPAN(16, 1)
SPAN(16, 2)

typedef void span_fn(const struct span *s, int pixels);

static span_fn *span_for(const struct ew_conv_shape *s)
{
    const bool one = s->axis[2].stride == 1;
    switch (each_of(s)) {
    case 4:
        return one ? span_4_1 : span_4_2;
    case 8:
        return one ? span_8_1 : span_8_2;
    default:
        return one ? span_16_1 : span_16_2;
    }
}

/* One row of outputs, one block. */
static void run_row(const struct ew_qconv *q, const struct qlines *l, int64_t row, int64_t c)
{
    const struct ew_conv_shape *s = q->shape;
    const int64_t out = s->axis[2].out;
    const int32_t *words = (const int32_t *)q->packed + c / BLOCK * block_words(s);
    struct span span = {.columns = l->columns,
                        .words = words,
                        .c = c,
                        .m = {.end = &q->end,
                              .ratio = (const float *)(const void *)words,
                              .y_step = s->cout,
                              .width = BLOCK}};
    span_fn *const run = span_for(s);
    for (int64_t o = 0; o < out;) {
        const int pixels = out - o >= PIXELS ? PIXELS : 1;
        const int64_t y = (row * out + o) * s->cout + c;
        span.at = l->at + o * s->axis[2].stride;
        span.m.y = q->end.to_float ? (void *)((float *)q->y + y) : (void *)((uint8_t *)q->y + y);
        span.m.add = q->end.add ? q->end.add + y : NULL;
        run(&span, pixels);
        o += pixels;
    }
}

void EW_K(int8_grouped_run)(const struct ew_qconv *q, int64_t begin, int64_t end, void *scratch)
{
    struct qlines l;
    qlines_init(&l, q, scratch);
    for (int64_t row = begin; row < end; row++) {
        qlines_find(&l, q, row);
        for (int64_t c = 0; c < q->shape->cin; c += BLOCK)
            run_row(q, &l, row, c);
    }
}

#else /* a product of words takes two bytes of k: the GEMM does as well */

bool EW_K(int8_grouped_fits)(const struct ew_conv_shape *s)
{
    return false;
}

size_t EW_K(int8_grouped_pack_size)(const struct ew_conv_shape *s)
{
    return 0;
}

void EW_K(int8_grouped_pack)(const struct ew_conv_shape *s, const struct ew_qconv_weights *w,
                             void *packed)
{
}

int64_t EW_K(int8_grouped_tiles)(const struct ew_conv_shape *s)
{
    return 0;
}

size_t EW_K(int8_grouped_scratch)(const struct ew_conv_shape *s)
{
    return 0;
}

void EW_K(int8_grouped_run)(const struct ew_qconv *q, int64_t begin, int64_t end, void *scratch)
{
}

#endif
