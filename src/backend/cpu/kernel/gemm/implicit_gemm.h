/* SPDX-License-Identifier: Apache-2.0 */
/* The implicit GEMM behind convolutions, dense layers and data gradients: geometry, blocking and
 * the pieces that its users share.  The inner loop is micro.h's.
 *
 * Output pixels are rows, output channels columns, and k runs over (tap, input channel).  The rows
 * of a tile are gathered into a panel [rows][KS] (no im2col of the whole input: a panel lives in L2
 * and serves all columns of its tile), weights are packed once as
 *
 *   [group][block of NR outputs][k][NR]      (the last block: block_width, packed_width)
 *
 * Two kinds of input need no panel.  Pixels of a 1x1 convolution with stride 1 are `flat`: rows of
 * a matrix.  Where few channels make runs short (the first layers of all networks), the lines of
 * one row of outputs, of all frames that it sees, are copied, with their padding, into a line
 * buffer, and a tile is that row.
 *
 * A tile is row_block * MR pixels x o_block * NR outputs of one group; inside it k is cut into
 * equal chunks of at most KC, so that the weights of a chunk (o_block * NR * KC floats, 128 KiB)
 * stay in L2 while the tile's pixels pass by.  Weights that only one panel of a matrix meets are
 * read from end to end instead, which memory likes best. */
#ifndef EW_BACKEND_CPU_KERNEL_GEMM_IMPLICIT_GEMM_H
#define EW_BACKEND_CPU_KERNEL_GEMM_IMPLICIT_GEMM_H

#include "backend/cpu/kernel/gemm/micro.h"

#define O_BLOCK    (128 / NR)          /* blocks of NR outputs in a tile, at most */
#define ROW_MAX    (MR == 12 ? 8 : 16) /* panels of MR pixels in a tile, at most */
#define ROW_FEW    (60 / MR) /* so few panels are not shared out: weights are what takes time */
#define ROW_BLOCKS 4         /* summed at once for a single row */
/* Rows of a strip that are read in place although they lie a multiple of 4 KiB apart and so share a
 * set of L1, which has 8 ways or more on x86; 0: none are. */
#if LANES >= 8
#define STRIP_APART 7
#else
#define STRIP_APART 0
#endif
#define MIN_WORK 8 /* tiles to aim at before tiles grow */

/* Taps of the filter that see the input for some output.  On small images the others see padding
 * only: of the 3x3 taps on one pixel, eight.  Nothing else is packed or multiplied. */
struct used {
    int64_t first[3], all[3]; /* the first that is used; taps of the filter */
    bool trimmed;             /* not all of them are */
};

/* Cuts the axes down to those taps. */
void EW_KF(implicit_gemm_trim)(struct ew_conv_axis axis[3], struct used *used);

/* A convolution whose output may be a strided view of a larger tensor. */
struct implicit_gemm {
    struct used used;
    struct ew_conv_axis axis[3];
    int64_t batch, groups, cg, og; /* channels of one group */
    int64_t x_image, x_step[3];    /* floats between images, and between pixels by axis */
    int64_t y_image, y_step[3];
    int64_t rows; /* output pixels of all images */
    bool flat, line_buffer;
    bool apart;          /* not flat only because pixels lie a multiple of 4 KiB apart */
    bool flat_y;         /* so are the output's pixels, y_step[2] apart */
    int64_t lines;       /* of the input that one row of outputs reads, */
    int64_t line_floats; /* and floats of each */
    int64_t run, runs;   /* k is `runs` runs of `run` floats, contiguous in x */
    int64_t k, kc;       /* kc: a chunk, at most KC */
    int64_t blocks;      /* of NR outputs in a group */
    int64_t at_once;     /* of these for a single row, at most ROW_BLOCKS */
    int64_t row_tiles, row_block, o_tiles, o_block;
    int64_t tiles;
    int64_t split; /* row tiles of a split of statistics */
};

/* Of a forward convolution. */
void EW_K(implicit_gemm_init)(struct implicit_gemm *c, const struct ew_conv_shape *s);

/* After axis, batch, groups, cg, og and the steps have been set. */
void EW_K(implicit_gemm_plan)(struct implicit_gemm *c);

/* Floats of one group's packed weights. */
int64_t EW_K(implicit_gemm_group_size)(const struct implicit_gemm *c);

#define LINE_BUFFER_MAX 6144 /* floats of a line buffer: 24 KiB, so that it stays in L1 */
#define LINE_BUFFER_WEIGHTS                                                                        \
    (96 << 10) /* all floats of weights: each line buffer reads them from L2 */

#define LINE_BUFFER_FLOATS (LINE_BUFFER_MAX + LANES) /* whole vectors are read */

/* Bytes: a line buffer, or the rows of a tile where they are gathered. */
size_t EW_K(implicit_gemm_scratch)(const struct implicit_gemm *c);

struct implicit_gemm_run {
    const struct implicit_gemm *core;
    const float *x, *w;
    float *y;
    const struct ew_epilogue *end;
    const struct ew_batch_norm *norm; /* makes x, see conv_norms; NULL: x is there */
    float *stats;                     /* see ew_conv */
    void *scratch; /* implicit_gemm_scratch bytes, or the rows of a tile that the norm makes */
};

void EW_K(implicit_gemm_run)(const struct implicit_gemm_run *run, int64_t begin, int64_t end);

/* Where the pixels of a panel lie. */
struct pixel {
    int64_t x;     /* offset of the image in x */
    int64_t at[3]; /* input coordinates of tap 0; may be outside */
    int64_t y;     /* offset of the output pixel */
};

void EW_K(implicit_gemm_pixels)(const struct implicit_gemm *c, int64_t row, int count,
                                struct pixel *out);

/* Gathers k in [k0, k1) of these pixels; x is that of the group. */
void EW_K(implicit_gemm_gather)(const struct implicit_gemm *c, const float *x,
                                const struct pixel *p, int count, int64_t k0, int64_t k1,
                                float *panel);

/* Copies what one row of outputs reads into `line_buffer`, LINE_BUFFER_FLOATS: lines of the image,
 * line_floats floats apart, with their padding (c->line_buffer must hold). */
void EW_K(implicit_gemm_fill_lines)(const struct implicit_gemm *c, const float *x, int64_t row,
                                    float *line_buffer);

/* The same through a line buffer (c->line_buffer must hold): rows [first, last) of the output
 * pixels, in scratch of LINE_BUFFER_FLOATS. */
struct implicit_gemm_rows {
    int64_t first, last, k0, k1;
};

void EW_K(implicit_gemm_gather_lines)(const struct implicit_gemm *c, const float *x,
                                      struct implicit_gemm_rows rows, float *line_buffer,
                                      float *panel);

#endif
