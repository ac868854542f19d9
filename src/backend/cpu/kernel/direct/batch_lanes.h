/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of convolutions with few channels share: images in lanes.
 *
 * A first layer with 6 outputs leaves most of a vector of outputs empty.  With a batch of images
 * the lanes are images instead: nothing is padded, weights are broadcast, and all loads are whole.
 *
 *   line_buffer: [line][column, with the padding][channel][LANES images]
 *
 * A tile is some rows of outputs of LANES images; what it reads of x is transposed into a line
 * buffer. */
#ifndef EW_BACKEND_CPU_KERNEL_DIRECT_BATCH_LANES_H
#define EW_BACKEND_CPU_KERNEL_DIRECT_BATCH_LANES_H

#include "backend/cpu/kernel/common/transpose_tile.h"

#define BATCH_LANES_BUFFER (256 << 10) /* bytes: it has to leave room in L2 */

struct batch_lanes {
    const struct ew_conv_shape *s;
    int64_t columns, line;     /* of the line buffer; a line in floats */
    int64_t rows, lines;       /* of outputs and of inputs in a tile */
    int64_t row_tiles, groups; /* tiles along the rows, and of images */
    int64_t x_row, x_image;    /* floats */
    int64_t y_row, y_image;
};

struct batch_lanes_tile {
    int64_t row, rows;     /* of outputs */
    int64_t image, images; /* the first, and how many */
};

/* Two axes, no groups and no dilation, over at least LANES images. */
bool EW_K(batch_lanes_is_plain)(const struct ew_conv_shape *s);

bool EW_K(batch_lanes_init)(struct batch_lanes *f,
                            const struct ew_conv_shape *s); /* false: too large a line buffer */

struct batch_lanes_tile EW_K(batch_lanes_tile)(const struct batch_lanes *f, int64_t index);

/* Transposes line y of x, with its padding. */
void EW_K(batch_lanes_transpose_line)(const struct batch_lanes *f, const struct batch_lanes_tile *t,
                                      const float *x, int64_t y, float *to);

/* Transposes the lines that the tile reads. */
void EW_K(batch_lanes_fill_lines)(const struct batch_lanes *f, const struct batch_lanes_tile *t,
                                  const float *x, float *line_buffer);

/* ---- Gradients of filters: one vector of sums for each weight, a lane for each image ---- */

#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_neon)
#define BATCH_LANES_OUTPUTS 4 /* summed at once, times the taps of a line */
#else
#define BATCH_LANES_OUTPUTS 2
#endif

/* All weights of some outputs and one line of taps, over rows of outputs. */
struct batch_lanes_line {
    const struct ew_conv_shape *s;
    const float *x, *dy; /* what meets tap 0 in the first row: [column][cin or cout][LANES] */
    int64_t rows, x_row, dy_row; /* how many, and floats from one to the next */
    float *sum;                  /* [output][column of taps][cin][LANES]; added to */
    int64_t sum_step;            /* floats between outputs */
    int64_t outputs;             /* 1 to BATCH_LANES_OUTPUTS */
};

void EW_K(batch_lanes_line)(const struct batch_lanes_line *l);

/* Adds up dy, [pixel][output][LANES], by output: sum is [output][LANES]. */
void EW_K(batch_lanes_bias)(const float *dy, int64_t pixels, int64_t outputs, float *sum);

/* out[i] (+)= the sum of the lanes of vector i. */
void EW_K(batch_lanes_add_lanes)(const float *sum, int64_t n, float *out, bool add);

/* Rows of outputs among [*first, *last) whose tap line `tap` lies in the image. */
INLINE void batch_lanes_rows(const struct ew_conv_axis *h, int64_t tap, int64_t *first,
                             int64_t *last)
{
    const int64_t before = max_i64(h->pad - tap, 0), lines = h->in + h->pad - tap;
    *first = max_i64(*first, div_up(before, h->stride));
    *last = min_i64(*last, lines > 0 ? div_up(lines, h->stride) : 0);
}

/* A row of n floats of each image to [n][LANES]; `step` floats from image to image. */
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
