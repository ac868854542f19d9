/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit depthwise convolution by columns of taps: a word is four taps of a column as bytes (VNNI)
 * or two as int16 (AVX2), so one instruction multiplies and adds them.
 *
 *   VNNI: rows r0 r1 r2 r3 of 64 channels -> interleaved -> 4 vectors of 16 channels x 4 taps
 *         (half as many of each with AVX-VNNI)
 *   AVX2: rows r0 r1 of 16 channels, widened -> interleaved -> 2 vectors of 8 channels x 2 taps
 *
 * A column is interleaved once and serves all outputs whose windows contain it.  Unpacking works
 * within 128-bit lanes, and narrowing restores the order of channels, so weights, biases and ratios
 * are packed in the unpacked order: vector i, lane 4 p + j holds channel 4 PARTS p + 4 i + j. */
#include "backend/cpu/kernel/int8/int8_depthwise.h"

#if defined(HAS_VNNI) || defined(EW_ISA_IS_avx2)

#if defined(EW_ISA_IS_avx512vnni)
#define PIXELS  6 /* outputs at once: 24 accumulators, a column of 4 */
#define V(name) _mm512_##name
typedef __m512i bytes;
#elif defined(EW_ISA_IS_avx2vnni)
#define PIXELS  2 /* 8 accumulators, a column of 4 */
#define V(name) _mm256_##name
typedef __m256i bytes;
#else
#define PIXELS 4 /* 8 accumulators, a column of 2 */
#endif

#if defined(HAS_VNNI)
#define BLOCK BIG /* channels of a block */
#define PARTS 4   /* vectors of a block */
typedef int8_t weight;
#else
#define BLOCK WIDE
#define PARTS 2
typedef int16_t weight;
#endif

static int64_t groups_of(const struct ew_conv_shape *s)
{
    return div_up(s->axis[1].taps, WORD);
}

/* Words of a packed block: ratio, bias, then [group of rows of taps][column][PARTS][LANES]. */
static int64_t block_words(const struct ew_conv_shape *s)
{
    return BLOCK * (2 + groups_of(s) * s->axis[2].taps);
}

size_t EW_K(int8_depthwise_column_pack_size)(const struct ew_conv_shape *s)
{
    return (size_t)(div_up(s->cin, BLOCK) * block_words(s)) * sizeof(int32_t);
}

/* The first channel of block b.  Without masked loads the last block overlaps the previous one. */
static int64_t block_start(const struct ew_conv_shape *s, int64_t b)
{
#if defined(EW_ISA_IS_avx2)
    return min_i64(b * BLOCK, s->cin - BLOCK);
#else
    return b * BLOCK;
#endif
}

/* The channel in lane l of vector i. */
static int64_t channel_of(int64_t i, int64_t l)
{
    return l / 4 * 4 * PARTS + i * 4 + l % 4;
}

static void pack_channel(const struct ew_conv_shape *s, const struct ew_qconv_weights *w, int64_t c,
                         int32_t *words, int64_t lane)
{
    const int64_t high = s->axis[1].taps, across = s->axis[2].taps;
    const bool exists = c < s->cin;
    weight *weights = (weight *)(words + 2 * BLOCK);
    uint32_t sum = 0;
    for (int64_t r = 0; r < groups_of(s) * WORD; r++)
        for (int64_t t = 0; t < across; t++) {
            const bool tap = exists && r < high;
            const int value = tap ? (int8_t)(w->w[(c * high + r) * across + t] ^ w->flip) : 0;
            weights[((r / WORD * across + t) * BLOCK + lane) * WORD + r % WORD] = (weight)value;
            sum += (uint32_t)value;
        }
    const float ratio = exists ? w->ratio[c] : 0;
    memcpy(words + lane, &ratio, sizeof(ratio));
    const uint32_t start = (uint32_t)(w->bias && exists ? w->bias[c] : 0);
    words[BLOCK + lane] = (int32_t)(start - (uint32_t)w->of_x.zero * sum);
}

void EW_K(int8_depthwise_column_pack)(const struct ew_conv_shape *s,
                                      const struct ew_qconv_weights *w, void *packed)
{
    int32_t *words = packed;
    for (int64_t b = 0; b < div_up(s->cin, BLOCK); b++, words += block_words(s))
        for (int64_t lane = 0; lane < BLOCK; lane++)
            pack_channel(s, w, block_start(s, b) + channel_of(lane / LANES, lane % LANES), words,
                         lane);
}

/* Consecutive outputs of one row, some channels. */
struct span {
    const uint8_t *const *at; /* table entry of the first output's first tap, in the first line */
    int64_t columns;          /* table entries between lines */
    const int32_t *words;     /* packed block */
    int64_t c, n;             /* first channel, number of channels */
    int lines;
    uint8_t *y;
    int64_t y_step;
    const struct ew_qend *end;
};

#if defined(HAS_VNNI)
INLINE bytes load_line(const struct span *s, int line, int column)
{
    if (line >= s->lines)
        return (bytes){0};
    return (bytes)load_big(s->at[line * s->columns + column] + s->c, s->n);
}

/* Interleaves lines 4 g to 4 g + 3 of one column. */
INLINE void interleave(const struct span *s, int g, int column, vint out[PARTS])
{
    const bytes a = load_line(s, 4 * g, column), b = load_line(s, 4 * g + 1, column);
    const bytes c = load_line(s, 4 * g + 2, column), d = load_line(s, 4 * g + 3, column);
    const bytes ab_low = V(unpacklo_epi8)(a, b), ab_high = V(unpackhi_epi8)(a, b);
    const bytes cd_low = V(unpacklo_epi8)(c, d), cd_high = V(unpackhi_epi8)(c, d);
    out[0] = (vint)V(unpacklo_epi16)(ab_low, cd_low);
    out[1] = (vint)V(unpackhi_epi16)(ab_low, cd_low);
    out[2] = (vint)V(unpacklo_epi16)(ab_high, cd_high);
    out[3] = (vint)V(unpackhi_epi16)(ab_high, cd_high);
}

/* The epilogue is plain (ew_qlayer_end_is_plain): the catalogue checks it. */
INLINE void finish_pixels(const struct span *s, vint sum[PIXELS][PARTS], const int pixels)
{
    const float *ratio = (const float *)(const void *)s->words;
    const struct plain_end e = plain_end_of(s->end);
    const int64_t y_step = s->y_step, n = s->n;
    uint8_t *y = s->y;
    UNROLL
    for (int p = 0; p < pixels; p++, y += y_step) {
        const vint *at = sum[p];
        const v16 low =
            narrow2(requantize(at[0], load(ratio)), requantize(at[1], load(ratio + LANES)));
        const v16 high = narrow2(requantize(at[2], load(ratio + 2 * LANES)),
                                 requantize(at[3], load(ratio + 3 * LANES)));
        vbig q = plain_end_bytes(low, high, &e);
#if defined(EW_ISA_IS_avx512vnni)
        if (s->end->table)
            q = (vbig)lookup64((bytes)q, s->end->table);
#endif
        store_big(y, q, n);
    }
}
#else
INLINE v16 load_line(const struct span *s, int line, int column)
{
    if (line >= s->lines)
        return (v16){0};
    return widen(load_bytes(s->at[line * s->columns + column] + s->c, BLOCK));
}

/* Interleaves lines 2 g and 2 g + 1 of one column. */
INLINE void interleave(const struct span *s, int g, int column, vint out[PARTS])
{
    const __m256i a = (__m256i)load_line(s, 2 * g, column);
    const __m256i b = (__m256i)load_line(s, 2 * g + 1, column);
    out[0] = (vint)_mm256_unpacklo_epi16(a, b);
    out[1] = (vint)_mm256_unpackhi_epi16(a, b);
}

/* As above, two pixels at a time. */
INLINE void finish_pixels(const struct span *s, vint sum[PIXELS][PARTS], const int pixels)
{
    const float *ratios = (const float *)(const void *)s->words;
    const vec ratio[PARTS] = {load(ratios), load(ratios + LANES)};
    const struct plain_end e = plain_end_of(s->end);
    const int64_t y_step = s->y_step;
    uint8_t *y = s->y;
    UNROLL
    for (int p = 0; p < pixels; p += 2, y += 2 * y_step) {
        const bool two = p + 1 < pixels;
        const vint *a = sum[p], *b = sum[two ? p + 1 : p];
        store_two_rows(y, two ? y + y_step : y,
                       narrow2(requantize(a[0], ratio[0]), requantize(a[1], ratio[1])),
                       narrow2(requantize(b[0], ratio[0]), requantize(b[1], ratio[1])), &e);
    }
}
#endif

#if defined(EW_ISA_IS_avx2)
/* Applies a lookup table to pixels that have just been stored: during the sums there are no
 * registers for it. */
static __attribute__((noinline)) void look_up_pixels(const struct span *s, int pixels)
{
    uint8_t *y = s->y;
    for (int p = 0; p < pixels; p++, y += s->y_step)
        for (int i = 0; i < BLOCK; i += WIDE)
            store_bytes(y + i, lookup(load_bytes(y + i, WIDE), s->end->table), WIDE);
}
#endif

/* Constants of an instance, with the size of the window. */
struct form {
    int high, across, stride, pixels;
};

/* Adds column `column` of lines WORD g and following to all outputs whose windows contain it. */
INLINE void add_column(const struct span *s, vint sum[PIXELS][PARTS], const int g, const int column,
                       const struct form f)
{
    const int32_t *w = s->words + (2 + g * f.across) * BLOCK;
    vint x[PARTS];
    interleave(s, g, column, x);
    UNROLL
    for (int p = 0; p < f.pixels; p++) {
        const int t = column - p * f.stride;
        if (t < 0 || t >= f.across)
            continue;
        UNROLL
        for (int i = 0; i < PARTS; i++)
            sum[p][i] = in_order(dot(sum[p][i], x[i], load_int(w + (t * PARTS + i) * LANES)));
    }
}

INLINE void span_fixed(const struct span *s, const struct form f)
{
    const int groups = (f.high + WORD - 1) / WORD, reach = (f.pixels - 1) * f.stride + f.across;
    vint sum[PIXELS][PARTS];
    UNROLL
    for (int i = 0; i < PARTS; i++) {
        const vint bias = load_int(s->words + BLOCK + i * LANES);
        UNROLL
        for (int p = 0; p < f.pixels; p++)
            sum[p][i] = bias;
    }
    UNROLL
    for (int g = 0; g < groups; g++) {
        UNROLL
        for (int column = 0; column < reach; column++)
            add_column(s, sum, g, column, f);
    }
    finish_pixels(s, sum, f.pixels);
#if defined(EW_ISA_IS_avx2)
    if (s->end->table)
        look_up_pixels(s, f.pixels);
#endif
}

#define SPAN_CASE(high, across, stride, n)                                                         \
    case n:                                                                                        \
        span_fixed(s, (struct form){high, across, stride, n});                                     \
        break;

#if PIXELS == 6
#define SPAN_CASES(high, across, stride)                                                           \
    SPAN_CASE(high, across, stride, 1)                                                             \
    SPAN_CASE(high, across, stride, 2)                                                             \
    SPAN_CASE(high, across, stride, 3)                                                             \
    SPAN_CASE(high, across, stride, 4)                                                             \
    SPAN_CASE(high, across, stride, 5)
#elif PIXELS == 2
#define SPAN_CASES(high, across, stride) SPAN_CASE(high, across, stride, 1)
#else
#define SPAN_CASES(high, across, stride)                                                           \
    SPAN_CASE(high, across, stride, 1)                                                             \
    SPAN_CASE(high, across, stride, 2)                                                             \
    SPAN_CASE(high, across, stride, 3)
#endif

#define SPAN(high, across, stride)                                                                 \
    static void span_##high##_##stride(struct span *s, int pixels)                                 \
    {                                                                                              \
        s->lines = high;                                                                           \
        switch (pixels) {                                                                          \
            SPAN_CASES(high, across, stride)                                                       \
        default:                                                                                   \
            span_fixed(s, (struct form){high, across, stride, PIXELS});                            \
        }                                                                                          \
    }

SPAN(1, 1, 1)
SPAN(3, 3, 1)
SPAN(3, 3, 2)
SPAN(5, 5, 1)
SPAN(5, 5, 2)

typedef void span_fn(struct span *s, int pixels);

static span_fn *span_for(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    if (a[0].taps != 1 || a[1].taps != a[2].taps || a[2].dilation != 1 || a[2].stride > 2)
        return NULL;
    if (a[2].taps == 1)
        return a[2].stride == 1 ? span_1_1 : NULL;
    if (a[2].taps == 3)
        return a[2].stride == 1 ? span_3_1 : span_3_2;
    if (a[2].taps == 5)
        return a[2].stride == 1 ? span_5_1 : span_5_2;
    return NULL;
}

bool EW_K(int8_depthwise_column_fits)(const struct ew_conv_shape *s)
{
#if defined(EW_ISA_IS_avx2)
    const bool whole = s->cin >= BLOCK;
#else
    const bool whole = true;
#endif
    return s->groups == s->cin && s->cin == s->cout && whole && span_for(s);
}

int64_t EW_K(int8_depthwise_column_tiles)(const struct ew_conv_shape *s)
{
    return EW_K(int8_depthwise_tiles)(s);
}

size_t EW_K(int8_depthwise_column_scratch)(const struct ew_conv_shape *s)
{
    return qlines_bytes(s);
}

void EW_K(int8_depthwise_column_run)(const struct ew_qconv *q, int64_t begin, int64_t end,
                                     void *scratch)
{
    const struct ew_conv_shape *s = q->shape;
    const int64_t out = s->axis[2].out, words = block_words(s);
    span_fn *const run = span_for(s);
    struct qlines l;
    qlines_init(&l, q, scratch);
    for (int64_t row = begin; row < end; row++) {
        qlines_find(&l, q, row);
        for (int64_t b = 0; b < div_up(s->cin, BLOCK); b++)
            for (int64_t o = 0; o < out; o += PIXELS) {
                const int64_t c = block_start(s, b);
                struct span span = {.at = l.at + o * s->axis[2].stride,
                                    .columns = l.columns,
                                    .words = (const int32_t *)q->packed + b * words,
                                    .c = c,
                                    .n = min_i64(BLOCK, s->cin - c),
                                    .y = (uint8_t *)q->y + (row * out + o) * s->cout + c,
                                    .y_step = s->cout,
                                    .end = &q->end};
                run(&span, (int)min_i64(PIXELS, out - o));
            }
    }
}

#else /* no gain from packing columns */

bool EW_K(int8_depthwise_column_fits)(const struct ew_conv_shape *s)
{
    return false;
}

size_t EW_K(int8_depthwise_column_pack_size)(const struct ew_conv_shape *s)
{
    return 0;
}

void EW_K(int8_depthwise_column_pack)(const struct ew_conv_shape *s,
                                      const struct ew_qconv_weights *w, void *packed)
{
}

int64_t EW_K(int8_depthwise_column_tiles)(const struct ew_conv_shape *s)
{
    return 0;
}

size_t EW_K(int8_depthwise_column_scratch)(const struct ew_conv_shape *s)
{
    return 0;
}

void EW_K(int8_depthwise_column_run)(const struct ew_qconv *q, int64_t begin, int64_t end,
                                     void *scratch)
{
}

#endif
