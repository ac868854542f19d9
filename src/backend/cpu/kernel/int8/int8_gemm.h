/* SPDX-License-Identifier: Apache-2.0 */
/* The implicit GEMM of 8-bit convolutions and dense layers: geometry, packed weights and the
 * micro-kernel.
 *
 * As in implicit_gemm.h output pixels are rows, output channels columns, k runs over (tap, input
 * channel) and QMR pixels are gathered into a panel; but a step of k is a word (int8_vec.h), and k
 * is never cut: sums stay in registers until they are bytes.  A panel of all of k is at most some
 * hundred KiB, read in order, QMR streams at a time, which caches follow.
 *
 * Packed weights: ratio [groups][columns], bias [groups][columns], then
 *
 *   [group][block of WIDE columns][words of k][columns of the block]     (one word each)
 *
 * with columns rounded up to whole vectors.
 *
 * AVX2's product of bytes adds two of them in 16 bits and saturates.  It is used where no sum can:
 * a step of k is two words, and `limit` holds the largest pixel of a step for which sums fit
 * whatever the pixels are: those of both words together, and those of either alone.  Each panel has
 * its largest pixel of each step (`most`).  Steps above their limits multiply 16-bit numbers.
 * Pixels are taken less an offset where their zero point is in the middle of the range (pixel_low):
 * they are then small numbers too.
 *
 * Where few channels make runs short the lines of the image that a row of outputs reads are copied,
 * with their padding, into a line buffer: each pixel's runs lie there at a fixed distance from its
 * neighbour's, so nothing is gathered.  Each run is then rounded up to whole words.  The bias has
 * the zero point of x in it: a sum over x less its zero point is the sum over x less zero point
 * times the sum of the weights. */
#ifndef EW_BACKEND_CPU_KERNEL_INT8_INT8_GEMM_H
#define EW_BACKEND_CPU_KERNEL_INT8_INT8_GEMM_H

#include "backend/cpu/kernel/gemm/implicit_gemm.h"
#include "backend/cpu/kernel/int8/int8_bytes.h"

/* Rows that the micro-kernel holds in registers, SIDE vectors each. */
#if defined(EW_ISA_IS_avx512)
#define QMR 14
#elif defined(EW_ISA_IS_neon)
#define QMR 8
#else
#define QMR 6
#endif

/* Products of bytes that are added in 16 bits, see above. */
#if defined(EW_ISA_IS_avx2) && !WORD_BYTES
#define SUMS_16 1
#else
#define SUMS_16 0
#endif

/* A step of k is so many words. */
#if SUMS_16
#define STEP_WORDS 2
#define LIMITS     32 /* steps that are compared at a time */
#else
#define STEP_WORDS 1
#endif
#define STEP_BYTES (STEP_WORDS * (int64_t)sizeof(int32_t))

#define Q_L2        (512 << 10) /* bytes of weights that a tile keeps coming back to */
#define PANEL_SLACK 64          /* bytes that may be written after a row of a panel */

struct qcore {
    struct used used;
    struct ew_conv_axis axis[3];
    int64_t batch, groups, cg, og, cin, cout;
    int64_t x_image, x_step[3]; /* bytes */
    int64_t rows;               /* output pixels of all images */
    int64_t run, runs, k;       /* k is `runs` runs of `run` bytes, contiguous in x */
    bool bytes;                 /* words are of bytes */
    int64_t words;              /* of k, rounded up as lines are */
    int64_t columns;            /* of a group, rounded up to whole vectors */
    bool matrix;                /* pixels are rows of a matrix */
    bool flat;                  /* and their bytes are words' */
    bool line_buffer;           /* a row of outputs reads lines that are copied for it, see below */
    int64_t lines, line_k, line_words; /* k is so many lines of line_k bytes, each in whole words */
    int64_t limits;                    /* of a line, rounded up; none without SUMS_16 */
    int64_t line;                      /* of the line buffer: bytes between lines */
    int64_t panel;                     /* bytes between rows of a panel */
    int64_t blocks, o_block, o_tiles, row_block, row_tiles, tiles;
};

void EW_K(qcore_init)(struct qcore *c, const struct ew_conv_shape *s);

/* The parts of packed weights. */
INLINE const float *packed_ratio(const struct qcore *c, const void *packed)
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

/* Bytes of x in the form that products take them: a panel's. */
#if defined(EW_ISA_IS_neondot)
#define X_OFFSET 128 /* signed: 128 less */
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

/* What is taken from pixels whose zero point is `zero`: with SUMS_16 what leaves the usual ones
 * positive and small. */
INLINE int32_t pixel_low(const struct qcore *c, int32_t zero)
{
    return SUMS_16 && c->bytes && zero > 72 ? zero - 72 : X_OFFSET;
}

/* Bytes of a row of a panel of 16-bit numbers. */
INLINE int64_t wide_row(int64_t words)
{
    return words * 2 * (int64_t)sizeof(int32_t) + 64;
}

struct qmicro {
    const uint8_t *a; /* rows of words */
    int64_t row_step; /* bytes */
    const void *w;    /* [lines][words][vectors * LANES] */
    int64_t words;    /* of a line */
    int64_t lines, line_step;
    bool bytes;           /* with SUMS_16: words are of bytes, and what follows is there */
    const uint8_t *most;  /* of a panel: [lines][limits] */
    const uint8_t *limit; /* of a block: [lines][two words, one][limits] */
    int64_t limits;
    uint8_t low;         /* pixel_low */
    uint8_t *wide;       /* the panel's words as two of 16-bit numbers each, once it is widened */
    bool is_widened;     /* it is */
    const int32_t *bias; /* of the block */
    const float *ratio;
    const struct ew_qend *end;
    bool plain; /* ratios below 1, and neither add, table nor float */
    void *y;    /* of the first row and column; bytes or floats */
    const uint8_t *add;
    int64_t y_step;                /* elements between rows */
    int64_t width;                 /* columns that exist, of one block or of several */
    const int32_t *prefetch[SIDE]; /* qmicro_pairs: weights to fetch, a line for each word of k */
};

/* Rows in [1, QMR]; blocks of columns that follow each other, each of two vectors, or one block of
 * one vector (width at most LANES).  Changes m on the way. */
void EW_K(qmicro)(struct qmicro *m, int rows);

/* The same for words of two 16-bit numbers, two vectors wide; the sums themselves are stored: y is
 * int32, there is neither bias nor end. */
void EW_K(qmicro_pairs)(const struct qmicro *m, int rows);

INLINE bool is_plain(const struct ew_qend *e)
{
    return e->ratios_below_1 && !e->add && !e->table && !e->to_float;
}

/* What it does to sums [rows][SIDE], for the others.  Two vectors hold columns as column_of says,
 * one alone holds them in order. */
void EW_K(qfinish)(const struct qmicro *m, const vint *sums, int rows, int vectors);

/* q = clamp(round((float)sum * ratio) + zero) of WIDE columns.  Where ratios are below 1 (ew_qend)
 * integers that saturate are clamped at the end; else floats are before they are rounded. */
struct qplain {
    vec low, high; /* of what is rounded */
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

/* Of a sum whose ratio is below 1. */
INLINE vint requantize(vint sum, vec ratio)
{
    return round_int(to_float(sum) * ratio);
}

/* Of any. */
INLINE vint requantize_any(vec t, const struct qplain *p)
{
    return round_int(vmin(vmax(t, p->low), p->high));
}

INLINE vbytes plain_bytes(v16 q, const struct qplain *p)
{
    return bytes_of(min16(max16(add16(q, p->zero), p->lo), p->hi)) ^ p->flip;
}

#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_avx2)
/* The same of two vectors at once: the last saturation is that to bytes.  Constants that are made
 * before the first store: stores of bytes might change what they are made of. */
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
/* Two rows of WIDE sums in two vectors each. */
INLINE void store_two_rows(uint8_t *y, uint8_t *next, v16 a, v16 b, const struct plain_end *e)
{
    const __m256i parts = (__m256i)plain_end_bytes(a, b, e);
    const __m256i rows = _mm256_permute4x64_epi64(parts, 0xd8);
    _mm_storeu_si128((void *)y, _mm256_castsi256_si128(rows));
    _mm_storeu_si128((void *)next, _mm256_extracti128_si256(rows, 1));
}
#endif

#endif
