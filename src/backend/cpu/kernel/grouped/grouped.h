/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of grouped convolution: blocks of outputs, tiles, and the line buffer of a tile's
 * inputs.
 *
 * Lanes are output channels.  With few channels a group, one vector spans several groups, and lane
 * l needs the i-th input of its own group, which is a permutation of one vector of inputs.
 *
 *   og = cg = 4, 16 lanes:   x   a b c d  e f g h  i j k l  m n o p
 *                     i = 1      b b b b  f f f f  j j j j  n n n n    times w[tap][1]
 *
 * With as many channels as lanes, a block is one group, and inputs are broadcast.
 *
 * The pixels that a tile reads are copied into a line buffer, [chunk][plane][line][column][LANES],
 * with zeros for padding: pixels have a constant stride, and loops need no edge handling. */
#ifndef EW_BACKEND_CPU_KERNEL_GROUPED_GROUPED_H
#define EW_BACKEND_CPU_KERNEL_GROUPED_GROUPED_H

#include "backend/cpu/kernel/common/vec.h"
#if defined(EW_ISA_IS_neon)
#include <arm_neon.h>
#endif

#define PX_MAX          8
#define GROUP_MAX       32   /* most inputs of a group; beyond, implicit GEMM is as fast */
#define LINE_BUFFER_MAX 6144 /* floats of a line buffer: 24 KiB, so that it stays in L1 */

/* Vectors of outputs in a block of one group: the registers left by 3 weights and 8 pixels. */
#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_neon)
#define VECTORS 2
#else
#define VECTORS 1
#endif

/* Two rows of outputs at once, which needs registers for 16 accumulators and 6 weights.  NEON has
 * enough too, but was not measured. */
#if defined(EW_ISA_IS_avx512)
#define ROW_PAIRS 1
#else
#define ROW_PAIRS 0
#endif

/* out[l] = x[index[l]] */
#if defined(EW_ISA_IS_avx512)
INLINE vec permute(vec x, vint index)
{
    return (vec)_mm512_permutexvar_ps((__m512i)index, (__m512)x);
}
#elif defined(EW_ISA_IS_avx2)
INLINE vec permute(vec x, vint index)
{
    return (vec)_mm256_permutevar8x32_ps((__m256)x, (__m256i)index);
}
#elif defined(EW_ISA_IS_neon)
INLINE vec permute(vec x, vint index)
{
    const vint bytes = index * 0x04040404 + 0x03020100;
    return (vec)vqtbl1q_u8((uint8x16_t)x, (uint8x16_t)bytes);
}
#else
INLINE vec permute(vec x, vint index)
{
    return (vec){x[index[0]], x[index[1]], x[index[2]], x[index[3]]};
}
#endif

struct grouped {
    const struct ew_conv_shape *s;
    int64_t cg, og;  /* channels of a group */
    int64_t span;    /* groups in a block; 1: inputs are broadcast */
    int64_t vectors; /* vectors of outputs in a block */
    int64_t parts;   /* blocks of one group, if span is 1 */
    int64_t blocks;
    int64_t chunks;                             /* vectors of inputs in a block */
    int64_t px;                                 /* pixels computed at once */
    int64_t columns, lines, line, plane, chunk; /* of the line buffer; the last three in floats */
    int64_t rows, row_tiles;                    /* rows of outputs in a tile */
    int64_t pixels, pixel_tiles;                /* outputs of a row in a tile */
    int64_t tiles;
};

/* One block of outputs. */
struct block {
    int64_t in, out, n_in, n_out; /* channels */
    int64_t index;
};

void EW_K(grouped_init)(struct grouped *g, const struct ew_conv_shape *s);

INLINE struct block grouped_block(const struct grouped *g, int64_t index)
{
    struct block b = {.index = index};
    if (g->span > 1) {
        const int64_t first = index * g->span, n = min_i64(g->span, g->s->groups - first);
        b.in = first * g->cg;
        b.out = first * g->og;
        b.n_in = n * g->cg;
        b.n_out = n * g->og;
    } else {
        const int64_t group = index / g->parts, at = index % g->parts * g->vectors * LANES;
        b.in = group * g->cg;
        b.out = group * g->og + at;
        b.n_in = g->cg;
        b.n_out = min_i64(g->vectors * LANES, g->og - at);
    }
    return b;
}

/* Floats of a block's packed weights: [plane, line][input][tap][vectors][LANES]. */
INLINE int64_t grouped_weights(const struct grouped *g)
{
    const struct ew_conv_axis *a = g->s->axis;
    return (int64_t)a[0].taps * a[1].taps * a[2].taps * g->cg * g->vectors * LANES;
}

INLINE size_t grouped_line_buffer_bytes(const struct grouped *g)
{
    return (size_t)(g->chunks * g->chunk) * sizeof(float);
}

/* For each lane, the index of its group's first input in a vector of inputs. */
INLINE vint grouped_index(const struct grouped *g)
{
    vint index = {0};
    for (int64_t l = 0; g->span > 1 && l < g->span * g->og; l++)
        index[l] = (int32_t)(l / g->og * g->cg);
    return index;
}

/* A tile: its block and first output. */
struct tile {
    struct block block;
    int64_t image, at[3];
    int64_t rows, pixels;
};

void EW_K(grouped_tile)(const struct grouped *g, int64_t index, struct tile *t);

/* With `rotate`, `s` is the dgrad of the convolution that w belongs to. */
void EW_K(grouped_pack_any)(const struct ew_conv_shape *s, const float *w, bool rotate,
                            float *packed);

/* Copies the inputs of the tile from x. */
void EW_K(grouped_fill_lines)(const struct grouped *g, const struct tile *t, const float *x,
                              float *line_buffer);

#endif
