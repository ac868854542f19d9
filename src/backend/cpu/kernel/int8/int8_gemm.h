/* SPDX-License-Identifier: Apache-2.0 */
/* The implicit GEMM of 8-bit convolutions and dense layers: geometry, packed weights and the
 * micro-kernel.
 *
 * As in implicit_gemm.h, output pixels are rows, output channels are columns, k runs over (tap,
 * input channel), and QMR pixels are gathered into a panel.  But a step of k is a word
 * (int8_vec.h), and k is not divided into chunks: sums stay in registers until they are
 * requantised.  A panel of all of k has at most some hundred KiB and is read sequentially, as QMR
 * streams.
 *
 * Packed weights: ratio [groups][columns], bias [groups][columns], then
 *
 *   [group][block of WIDE columns][words of k][columns of the block]     (one word each)
 *
 * with columns rounded up to whole vectors.
 *
 * AVX2's byte product (vpmaddubsw) adds two products in 16 bits and saturates.  It is used where no
 * sum can saturate.  A step of k is two words; for each step `limit` holds the largest pixel value
 * for which no sum can saturate, once for both words added and once for each alone, and `most` the
 * largest pixel value in the panel.  Steps above their limits use 16-bit products.  Pixels with a
 * zero point in the middle of the range are offset (pixel_low), so that typical values are small.
 *
 * With few channels, runs are too short to gather: the input lines that a row of outputs reads are
 * copied with their padding into a line buffer, where pixels have a constant stride.  Each run is
 * then rounded up to whole words.  The zero point of x is folded into the bias: sum of (x - zero) w
 * = sum of x w - zero * sum of w. */
#ifndef EW_BACKEND_CPU_KERNEL_INT8_INT8_GEMM_H
#define EW_BACKEND_CPU_KERNEL_INT8_INT8_GEMM_H

#include "backend/cpu/kernel/gemm/implicit_gemm.h"
#include "backend/cpu/kernel/int8/int8_bytes.h"

/* Rows of the micro-kernel's register tile, SIDE vectors each. */
#if defined(EW_ISA_IS_avx512)
#define QMR 14
#elif defined(EW_ISA_IS_neon)
#define QMR 8
#else
#define QMR 6
#endif

/* Byte products that are added in 16 bits, see above. */
#if defined(EW_ISA_IS_avx2) && !WORD_BYTES
#define SUMS_16 1
#else
#define SUMS_16 0
#endif

/* Words in a step of k. */
#if SUMS_16
#define STEP_WORDS 2
#define LIMITS     32 /* steps compared with their limits at a time */
#else
#define STEP_WORDS 1
#endif
#define STEP_BYTES (STEP_WORDS * (int64_t)sizeof(int32_t))

#define Q_L2        (512 << 10) /* most bytes of a tile's weights, which it reads repeatedly */
#define PANEL_SLACK 64          /* bytes that may be written beyond a row of a panel */

struct qcore {
    struct used used;
    struct ew_conv_axis axis[3];
    int64_t batch, groups, cg, og, cin, cout;
    int64_t x_image, x_step[3];        /* strides in bytes */
    int64_t rows;                      /* output pixels of all images */
    int64_t run, runs, k;              /* k is `runs` runs of `run` bytes, contiguous in x */
    bool bytes;                        /* words hold bytes */
    int64_t words;                     /* words of k, with each line rounded up */
    int64_t columns;                   /* columns of a group, rounded up to whole vectors */
    bool matrix;                       /* pixels are rows of a matrix */
    bool flat;                         /* and can be read in place as words */
    bool line_buffer;                  /* a row of outputs reads a line buffer */
    int64_t lines, line_k, line_words; /* k is `lines` lines of line_k bytes, each in line_words
                                        * words */
    int64_t limits;                    /* limits of a line, rounded up; only with SUMS_16 */
    int64_t line;                      /* bytes between lines of the line buffer */
    int64_t panel;                     /* bytes between rows of a panel */
    int64_t blocks, o_block, o_tiles, row_block, row_tiles, tiles;
};

void EW_K(qcore_init)(struct qcore *c, const struct ew_conv_shape *s);

/* The parts of packed weights. */
INLINE const float *packed_ratio(const void *packed)
{
    return packed;
}

INLINE const int32_t *packed_bias(const struct qcore *c, const void *packed)
{
    return (const int32_t *)packed + c->groups * c->columns;
}

INLINE const uint8_t *packed_words(const struct qcore *c, const void *packed)
{
    return (const uint8_t *)packed + 2 * c->groups * c->columns * (int64_t)sizeof(int32_t);
}

/* [groups * blocks][lines][two words, one][limits] */
INLINE const uint8_t *packed_limits(const struct qcore *c, const void *packed)
{
    return packed_words(c, packed) + c->groups * c->columns * c->words * (int64_t)sizeof(int32_t);
}

/* Offset of the panel's bytes from uint8 values. */
#if defined(EW_ISA_IS_neondot)
#define X_OFFSET 128 /* signed products: 128 less */
#else
#define X_OFFSET 0
#endif

/* Elements of k in a word; bytes of an element. */
INLINE int64_t word_of(const struct qcore *c)
{
    return !SUMS_16 ? WORD : c->bytes ? 4 : 2;
}

INLINE int64_t size_of(const struct qcore *c)
{
    return (int64_t)sizeof(int32_t) / word_of(c);
}

/* The value subtracted from pixels with zero point `zero`: with SUMS_16, one that makes typical
 * pixels small positive numbers. */
INLINE int32_t pixel_low(const struct qcore *c, int32_t zero)
{
    return SUMS_16 && c->bytes && zero > 72 ? zero - 72 : X_OFFSET;
}

/* Bytes of a panel's row widened to 16 bits. */
INLINE int64_t wide_row(int64_t words)
{
    return words * 2 * (int64_t)sizeof(int32_t) + 64;
}

struct qmicro {
    const uint8_t *a; /* the panel, rows of words */
    int64_t row_step; /* bytes between rows */
    const void *w;    /* [lines][words][vectors * LANES] */
    int64_t words;    /* words of a line */
    int64_t lines, line_step;
    bool bytes;           /* with SUMS_16: words hold bytes, and the following members are set */
    const uint8_t *most;  /* largest pixels of the panel: [lines][limits] */
    const uint8_t *limit; /* limits of the block: [lines][both words, each alone][limits] */
    int64_t limits;
    uint8_t low;   /* pixel_low */
    uint8_t *wide; /* the panel widened to 16 bits, if is_widened */
    bool is_widened;
    const int32_t *bias; /* bias of the block */
    const float *ratio;
    const struct ew_qend *end;
    bool plain; /* epilogue with ratios below 1, without add, table or float */
    void *y;    /* at the first row and column; bytes or floats */
    const uint8_t *add;
    int64_t y_step;                /* elements between rows */
    int64_t width;                 /* valid columns, of one or several blocks */
    const int32_t *prefetch[SIDE]; /* qmicro_pairs: weights to prefetch, a line for each word of
                                    * k */
};

/* rows in [1, QMR].  Computes consecutive blocks of columns of two vectors each, or one block of
 * one vector (width <= LANES).  Modifies m. */
void EW_K(qmicro)(struct qmicro *m, int rows);

/* The same for words of two int16, two vectors wide, without bias and epilogue: y is int32 sums. */
void EW_K(qmicro_pairs)(const struct qmicro *m, int rows);

INLINE bool is_plain(const struct ew_qend *e)
{
    return e->ratios_below_1 && !e->add && !e->table && !e->to_float;
}

/* The epilogue for sums [rows][SIDE].  Two vectors hold columns in the order of column_of, a single
 * one holds them in order. */
void EW_K(qfinish)(const struct qmicro *m, const vint *sums, int rows, int vectors);

/* Requantisation q = clamp(round((float)sum * ratio) + zero) of WIDE columns.  With ratios below 1
 * (ew_qend) saturated integers are clamped at the end; else floats are clamped before rounding. */
struct qplain {
    vec low, high; /* bounds before rounding */
    v16 zero, lo, hi;
    vbytes flip;
};

INLINE struct qplain plain_of(const struct ew_qend *e)
{
    return (struct qplain){.low = splat((float)(e->lo - e->y.zero)),
                           .high = splat((float)(e->hi - e->y.zero)),
                           .zero = splat16(e->y.zero),
                           .lo = splat16(e->lo),
                           .hi = splat16(e->hi),
                           .flip = e->y.flip - (vbytes){0}};
}

/* For ratios below 1. */
INLINE vint requantize(vint sum, vec ratio)
{
    return round_int(to_float(sum) * ratio);
}

/* For any ratio. */
INLINE vint requantize_any(vec t, const struct qplain *p)
{
    return round_int(vmin(vmax(t, p->low), p->high));
}

INLINE vbytes plain_bytes(v16 q, const struct qplain *p)
{
    return bytes_of(min16(max16(add16(q, p->zero), p->lo), p->hi)) ^ p->flip;
}

#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_avx2)
/* The same for two vectors at once, which saturate only when narrowed to bytes.  The constants are
 * computed before the first store, since byte stores may alias the epilogue. */
struct plain_end {
    v16 zero;
    vbig lo, hi, flip;
};

INLINE struct plain_end plain_end_of(const struct ew_qend *e)
{
    return (struct plain_end){.zero = splat16(e->y.zero),
                              .lo = (uint8_t)e->lo - (vbig){0},
                              .hi = (uint8_t)e->hi - (vbig){0},
                              .flip = e->y.flip - (vbig){0}};
}

INLINE vbig plain_end_bytes(v16 a, v16 b, const struct plain_end *e)
{
    const vbig q = pack_bytes(add16(a, e->zero), add16(b, e->zero));
    return min_bytes(max_bytes(q, e->lo), e->hi) ^ e->flip;
}
#endif

#if defined(EW_ISA_IS_avx2)
/* Stores two rows of WIDE sums, a and b, to y and `next`. */
INLINE void store_two_rows(uint8_t *y, uint8_t *next, v16 a, v16 b, const struct plain_end *e)
{
    const __m256i parts = (__m256i)plain_end_bytes(a, b, e);
    const __m256i rows = _mm256_permute4x64_epi64(parts, 0xd8);
    _mm_storeu_si128((void *)y, _mm256_castsi256_si128(rows));
    _mm_storeu_si128((void *)next, _mm256_extracti128_si256(rows, 1));
}
#endif

#endif
