/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of convolutions with few channels share: images in lanes.
 *
 * A first layer with 6 outputs leaves most of a vector of outputs empty.  With a batch of images
 * the lanes are images instead: nothing is padded, weights are broadcast, and all loads are whole.
 *
 *   band: [line][column, with the padding][channel][LANES images]
 *
 * A tile is some rows of outputs of LANES images; what it reads of x is transposed into a band. */
#ifndef EW_BACKEND_CPU_KERNEL_FEW_H
#define EW_BACKEND_CPU_KERNEL_FEW_H

#include "backend/cpu/kernel/turn.h"

#define FEW_BAND (256 << 10) /* bytes: it has to leave room in L2 */

struct few {
    const struct ew_conv_shape *s;
    int64_t columns, line;  /* of the band; a line in floats */
    int64_t rows, lines;    /* of outputs and of inputs in a tile */
    int64_t bands, groups;  /* tiles along the rows, and of images */
    int64_t x_row, x_image; /* floats */
    int64_t y_row, y_image;
};

struct few_tile {
    int64_t row, rows;     /* of outputs */
    int64_t image, images; /* the first, and how many */
};

bool EW_K(few_init)(struct few *f, const struct ew_conv_shape *s); /* false: too large a band */

struct few_tile EW_K(few_tile)(const struct few *f, int64_t index);

/* Transposes the lines that the tile reads. */
void EW_K(few_band)(const struct few *f, const struct few_tile *t, const float *x, float *band);

/* A row of n floats of each image to [n][LANES]; `step` floats from image to image. */
INLINE void few_turn_in(const float *from, int64_t step, int64_t images, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i += LANES) {
        vec r[LANES];
        turn_load(from + i, step, images, n - i, r);
        for (int64_t j = 0; j < min_i64(LANES, n - i); j++)
            store(to + (i + j) * LANES, r[j]);
    }
}

#endif
