/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of direct convolution with the batch in the lanes.
 *
 * A first layer with 6 output channels leaves most of a vector of outputs empty.  With the images
 * of a batch in the lanes nothing is padded, weights are broadcast, and all loads are whole
 * vectors.
 *
 *   line_buffer: [line][column, with the padding][channel][LANES images]
 *
 * A tile is some rows of outputs of LANES images; its part of x is transposed into a line
 * buffer. */
#ifndef EW_BACKEND_CPU_KERNEL_DIRECT_BATCH_LANES_H
#define EW_BACKEND_CPU_KERNEL_DIRECT_BATCH_LANES_H

#include "backend/cpu/kernel/common/transpose_tile.h"

#define BATCH_LANES_BUFFER (256 << 10) /* most bytes of a line buffer, which leaves room in L2 */

struct batch_lanes {
    const struct ew_conv_shape *s;
    int64_t columns, line;     /* columns of the line buffer; floats of a line */
    int64_t rows, lines;       /* rows of outputs and input lines in a tile */
    int64_t row_tiles, groups; /* tiles along the rows; groups of LANES images */
    int64_t x_row, x_image;    /* strides in floats */
    int64_t y_row, y_image;
};

struct batch_lanes_tile {
    int64_t row, rows;     /* first row of outputs, number of rows */
    int64_t image, images; /* first image, number of images */
};

/* True for 2-D convolutions without groups and dilation over at least LANES images. */
bool EW_K(batch_lanes_is_plain)(const struct ew_conv_shape *s);

bool EW_K(batch_lanes_init)(struct batch_lanes *f,
                            const struct ew_conv_shape *s); /* false: too large */

struct batch_lanes_tile EW_K(batch_lanes_tile)(const struct batch_lanes *f, int64_t index);

/* Transposes line y of x, with its padding. */
void EW_K(batch_lanes_transpose_line)(const struct batch_lanes *f, const struct batch_lanes_tile *t,
                                      const float *x, int64_t y, float *to);

/* Transposes the lines that the tile reads. */
void EW_K(batch_lanes_fill_lines)(const struct batch_lanes *f, const struct batch_lanes_tile *t,
                                  const float *x, float *line_buffer);

/* ---- Wgrad: a vector of accumulators for each weight, one lane for each image ---- */

#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_neon)
#define BATCH_LANES_OUTPUTS 4 /* outputs at once, times the taps of a line */
#else
#define BATCH_LANES_OUTPUTS 2
#endif

/* Wgrad of some outputs and one line of taps, over rows of outputs. */
struct batch_lanes_line {
    const struct ew_conv_shape *s;
    const float *x, *dy; /* operands of tap 0 in the first row: [column][cin or cout][LANES] */
    int64_t rows, x_row, dy_row; /* rows, and floats between them */
    float *sum;                  /* [output][column of taps][cin][LANES]; accumulated into */
    int64_t sum_step;            /* floats between outputs */
    int64_t outputs;             /* 1 to BATCH_LANES_OUTPUTS */
};

void EW_K(batch_lanes_line)(const struct batch_lanes_line *l);

/* sum [output][LANES] = sums of dy [pixel][output][LANES] over pixels. */
void EW_K(batch_lanes_bias)(const float *dy, int64_t pixels, int64_t outputs, float *sum);

/* out[i] (+)= the sum of the lanes of vector i. */
void EW_K(batch_lanes_add_lanes)(const float *sum, int64_t n, float *out, bool add);

/* Restricts rows of outputs [*first, *last) to those whose tap line `tap` is inside the image. */
INLINE void batch_lanes_rows(const struct ew_conv_axis *h, int64_t tap, int64_t *first,
                             int64_t *last)
{
    const int64_t before = max_i64(h->pad - tap, 0), lines = h->in + h->pad - tap;
    *first = max_i64(*first, div_up(before, h->stride));
    *last = min_i64(*last, lines > 0 ? div_up(lines, h->stride) : 0);
}

/* Transposes a row of n floats of each image to [n][LANES]; images are `step` floats apart. */
INLINE void batch_lanes_transpose_in(const float *from, int64_t step, int64_t images, int64_t n,
                                     float *to)
{
    for (int64_t i = 0; i < n; i += LANES) {
        vec r[LANES];
        transpose_load(from + i, step, images, n - i, r);
        for (int64_t j = 0; j < min_i64(LANES, n - i); j++)
            store(to + (i + j) * LANES, r[j]);
    }
}

#endif
