/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit grouped convolution with VNNI or AVX2: groups of 4, 8 or 16 input and as many output
 * channels.
 *
 * A block of 16 output channels reads 16 input channels, whatever the group size.  A step
 * multiplies each output by one word of its group's channels, which a permutation within 128-bit
 * lanes has moved to its lane.  As in k_int8_depthwise_column.c, a pixel is loaded once for all
 * outputs of a row whose windows contain it. */
#include "backend/cpu/kernel/int8/int8_depthwise.h"

#if defined(HAS_VNNI) || defined(EW_ISA_IS_avx2)

#define BLOCK 16 /* channels of a block */
#define TAPS  3

/* ---- Permutations: the word of its group that each output reads in a step ---- */

#if defined(EW_ISA_IS_avx512vnni)
#define PIXELS         7 /* outputs at once */
#define VECTORS        1 /* vectors of sums of a pixel */
#define FOUR_WORDS(p)  (vint) _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)(p)))
#define PERMUTE(x, at) (vint) _mm512_permutevar_ps((__m512)(x), (__m512i)(at))
#elif defined(EW_ISA_IS_avx2vnni)
#define PIXELS         6
#define VECTORS        2
#define FOUR_WORDS(p)  (vint) _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(p)))
#define PERMUTE(x, at) (vint) _mm256_permutevar_ps((__m256)(x), (__m256i)(at))
#endif

#if defined(HAS_VNNI)
typedef int8_t weight;
typedef vint pixel;

/* The output in lane l of vector v, and the inverse. */
INLINE int output_of(const int v, const int l)
{
    return VECTORS == 1 ? l : column_of(v, l);
}

INLINE int64_t lane_of(int64_t o)
{
    return VECTORS == 1 ? o : o / 4 % 2 * LANES + o / 8 * 4 + o % 4;
}

INLINE int64_t step_of(int64_t each, int64_t o, int64_t word)
{
    return word;
}

/* The 16 channels of a pixel are four words, loaded into each 128-bit lane; output o reads word o /
 * each * (each / 4) + step. */
INLINE pixel pixel_at(const uint8_t *p)
{
    return FOUR_WORDS(p);
}

INLINE vint words_for(pixel x, const int each, const int step, const int v)
{
    vint at;
    UNROLL
    for (int l = 0; l < LANES; l++)
        at[l] = output_of(v, l) / each * (each / 4) + step;
    return PERMUTE(x, at);
}
#else
#define PIXELS  4 /* 8 accumulators, a pixel, its permutation and a product: 16 registers */
#define VECTORS 2
typedef int16_t weight;
typedef __m256i pixel;

/* The 16 channels of a pixel are eight words of int16, four in each 128-bit lane.  Outputs are in
 * the order of column_of: 0 to 7 in the lower lanes of both vectors, 8 to 15 in the upper ones.
 * Groups of 4 or 8 find their words in their own lane.  A group of 16 reads the words of its own
 * lane in steps 0 to 3 and, with the lanes swapped, those of the other one in steps 4 to 7. */
INLINE int64_t lane_of(int64_t o)
{
    return o / 4 % 2 * LANES + o / 8 * 4 + o % 4;
}

INLINE int64_t step_of(int64_t each, int64_t o, int64_t word)
{
    return each < 16 ? word : (word / 4 ^ o / 8) * 4 + word % 4;
}

INLINE pixel pixel_at(const uint8_t *p)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)p));
}

INLINE vint words_for(pixel x, const int each, const int step, const int v)
{
    if (step >= 4)
        x = _mm256_permute4x64_epi64(x, 0x4e);
    switch (each == 4 ? v * 2 + step : step % 4) {
    case 0:
        return (vint)_mm256_shuffle_epi32(x, 0x00);
    case 1:
        return (vint)_mm256_shuffle_epi32(x, 0x55);
    case 2:
        return (vint)_mm256_shuffle_epi32(x, 0xaa);
    default:
        return (vint)_mm256_shuffle_epi32(x, 0xff);
    }
}
#endif

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

/* Words of a packed block: ratio, bias, then [row][column][step][BLOCK]. */
static int64_t block_words(const struct ew_conv_shape *s)
{
    return BLOCK * (2 + TAPS * TAPS * each_of(s) / WORD);
}

size_t EW_K(int8_grouped_pack_size)(const struct ew_conv_shape *s)
{
    return (size_t)(s->cin / BLOCK * block_words(s)) * sizeof(int32_t);
}

void EW_K(int8_grouped_pack)(const struct ew_conv_shape *s, const struct ew_qconv_weights *w,
                             void *packed)
{
    const int64_t each = each_of(s), size = TAPS * TAPS * each, steps = each / WORD;
    for (int64_t o = 0; o < s->cout; o++) {
        int32_t *words = (int32_t *)packed + o / BLOCK * block_words(s);
        weight *weights = (weight *)(words + 2 * BLOCK);
        const int64_t lane = lane_of(o % BLOCK);
        uint32_t sum = 0;
        for (int64_t k = 0; k < size; k++) { /* k runs over (tap, channel) */
            const int value = (int8_t)(w->w[o * size + k] ^ w->flip);
            const int64_t step = k / each * steps + step_of(each, o % BLOCK, k % each / WORD);
            weights[(step * BLOCK + lane) * WORD + k % WORD] = (weight)value;
            sum += (uint32_t)value;
        }
        memcpy(words + lane, &w->ratio[o], sizeof(float));
        const uint32_t start = (uint32_t)(w->bias ? w->bias[o] : 0);
        words[BLOCK + lane] = (int32_t)(start - (uint32_t)w->of_x.zero * sum);
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

/* Consecutive outputs of one row, one block of channels. */
struct span {
    const uint8_t *const *at; /* table entry of the first output's first tap, in the first line */
    int64_t columns;          /* table entries between lines */
    const int32_t *words;     /* packed block */
    int64_t c;
    struct qmicro m;
};

struct span_sums {
    vint v[PIXELS][SIDE];
};

struct form {
    int each, stride, pixels;
};

/* Adds input pixel `column` of a line to all outputs whose windows contain it; w: weights of the
 * line. */
INLINE void add_pixel(struct span_sums *s, const uint8_t *from, const int32_t *w, const int column,
                      const struct form f)
{
    const int steps = f.each / WORD;
    const pixel x = pixel_at(from);
    UNROLL
    for (int i = 0; i < steps * VECTORS; i++) {
        const int step = i / VECTORS, v = i % VECTORS;
        const vint words = words_for(x, f.each, step, v);
        UNROLL
        for (int p = 0; p < f.pixels; p++) {
            const int t = column - p * f.stride;
            if (t < 0 || t >= TAPS)
                continue;
            const vint weights = load_int(w + (t * steps + step) * BLOCK + v * LANES);
            s->v[p][v] = in_order(dot(s->v[p][v], words, weights));
        }
    }
}

INLINE void span_fixed(const struct span *s, const struct form f)
{
    const int reach = (f.pixels - 1) * f.stride + TAPS;
    struct span_sums sums;
    UNROLL
    for (int p = 0; p < f.pixels; p++) {
        UNROLL
        for (int v = 0; v < VECTORS; v++)
            sums.v[p][v] = load_int(s->words + BLOCK + v * LANES);
    }
    const int32_t *w = s->words + 2 * BLOCK;
    for (int r = 0; r < TAPS; r++, w += TAPS * f.each / WORD * BLOCK) {
        UNROLL
        for (int column = 0; column < reach; column++)
            add_pixel(&sums, s->at[r * s->columns + column] + s->c, w, column, f);
    }
    struct span_sums out; /* a copy: taking the address of the sums would keep them in memory */
    UNROLL
    for (int p = 0; p < f.pixels; p++) {
        UNROLL
        for (int v = 0; v < VECTORS; v++)
            out.v[p][v] = sums.v[p][v];
    }
    EW_K(qfinish)(&s->m, out.v[0], f.pixels, VECTORS);
}

/* clang-format off */
#define SPAN(each, stride) \
    static void span_##each##_##stride(const struct span *s, int pixels) \
    { \
        if (pixels == PIXELS) \
            span_fixed(s, (struct form){each, stride, PIXELS}); \
        else \
            span_fixed(s, (struct form){each, stride, 1}); \
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

/* Computes one row of outputs of one block. */
static void run_row(const struct ew_qconv *q, const struct qlines *l, int64_t row, int64_t c)
{
    const struct ew_conv_shape *s = q->shape;
    const int64_t out = s->axis[2].out;
    const int32_t *words = (const int32_t *)q->packed + c / BLOCK * block_words(s);
    struct span span = {.columns = l->columns,
                        .words = words,
                        .c = c,
                        .m = {.end = &q->end,
                              .plain = is_plain(&q->end),
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

#else /* words hold two elements of k: implicit GEMM is as fast */

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
