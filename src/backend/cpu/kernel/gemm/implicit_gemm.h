/* SPDX-License-Identifier: Apache-2.0 */
/* The implicit GEMM of convolutions, dense layers and dgrad: geometry, blocking and gathering.  The
 * micro-kernel is in micro.h.
 *
 * Rows are output pixels, columns are output channels, and k runs over (tap, input channel).  The
 * rows of a tile are gathered into a panel [rows][KS], which stays in L2 and serves all columns of
 * the tile; there is no im2col of the whole input.  Weights are packed once as
 *
 *   [group][block of NR outputs][k][NR]      (the last block: block_width, packed_width)
 *
 * Two kinds of input need no panel.  Pixels of a 1x1 convolution with stride 1 are the rows of a
 * matrix (`flat`).  With few channels (first layers), runs are too short to gather: all input lines
 * that one row of outputs reads are copied with their padding into a line buffer, and a tile is
 * that row.
 *
 * A tile is row_block * MR pixels x o_block * NR outputs of one group.  k is divided into equal
 * chunks of at most KC, so that the weights of a chunk (o_block * NR * KC floats, 128 KiB) stay in
 * L2 while they multiply all panels of the tile.  If there is only one panel, weights are not
 * blocked but read sequentially, since memory bandwidth is the limit. */
#ifndef EW_BACKEND_CPU_KERNEL_GEMM_IMPLICIT_GEMM_H
#define EW_BACKEND_CPU_KERNEL_GEMM_IMPLICIT_GEMM_H

#include "backend/cpu/kernel/gemm/micro.h"

#define O_BLOCK (128 / NR)          /* most blocks of NR outputs in a tile */
#define ROW_MAX (MR == 12 ? 8 : 16) /* most panels of MR pixels in a tile */
/* Up to so many panels, only outputs are divided: reading weights dominates. */
#define ROW_FEW    (60 / MR)
#define ROW_BLOCKS 4 /* blocks computed at once for a single row */
/* Most rows of a strip read in place if they are a multiple of 4 KiB apart, and so share a set of
 * L1, which has at least 8 ways on x86; 0: gather them instead. */
#if LANES >= 8
#define STRIP_APART 7
#else
#define STRIP_APART 0
#endif
#define MIN_WORK 8 /* smallest number of tiles for which tiles are enlarged */

/* The taps that read the input for at least one output.  On small images the others read only
 * padding (eight of the 3x3 taps on a single pixel); they are neither packed nor multiplied. */
struct used {
    int64_t first[3], all[3]; /* the first used tap; all taps of the filter */
    bool trimmed;             /* some taps are unused */
};

/* Restricts the axes to those taps. */
void EW_KF(implicit_gemm_trim)(struct ew_conv_axis axis[3], struct used *used);

/* A convolution whose output may be a strided view of a larger tensor. */
struct implicit_gemm {
    struct used used;
    struct ew_conv_axis axis[3];
    int64_t batch, groups, cg, og; /* channels of one group */
    int64_t x_image, x_step[3];    /* strides in floats: between images, and between pixels along
                                    * each axis */
    int64_t y_image, y_step[3];
    int64_t rows; /* output pixels of all images */
    bool flat, line_buffer;
    bool apart;          /* would be flat, but pixels are a multiple of 4 KiB apart */
    bool flat_y;         /* output pixels are rows of a matrix, y_step[2] apart */
    int64_t lines;       /* input lines that one row of outputs reads */
    int64_t line_floats; /* floats of each in the line buffer */
    int64_t run, runs;   /* k is `runs` runs of `run` floats, contiguous in x */
    int64_t k, kc;       /* kc: of a chunk, at most KC */
    int64_t blocks;      /* blocks of NR outputs in a group */
    bool pairs;          /* the last block is packed in pairs along k, see micro_strip.h */
    int64_t at_once;     /* blocks computed at once for a single row, at most ROW_BLOCKS */
    int64_t row_tiles, row_block, o_tiles, o_block;
    int64_t tiles;
    int64_t split; /* row tiles in a split of the statistics */
};

/* For a forward convolution. */
void EW_K(implicit_gemm_init)(struct implicit_gemm *c, const struct ew_conv_shape *s);

/* Fills the rest once axis, batch, groups, cg, og and the strides are set. */
void EW_K(implicit_gemm_plan)(struct implicit_gemm *c);

/* Pairs do not cross lines of a line buffer. */
INLINE int64_t pair_lines(const struct implicit_gemm *c)
{
    return c->line_buffer ? c->lines : 1;
}

/* Floats of one group's packed weights. */
int64_t EW_K(implicit_gemm_group_size)(const struct implicit_gemm *c);

#define LINE_BUFFER_MAX 6144 /* most floats of a line buffer: 24 KiB, so that it stays in L1 */
/* Most floats of weights, which each line buffer reads from L2. */
#define LINE_BUFFER_WEIGHTS (96 << 10)

#define LINE_BUFFER_FLOATS (LINE_BUFFER_MAX + LANES) /* whole vectors are read at its end */

/* Bytes of scratch: a line buffer, or the gathered rows of a tile. */
size_t EW_K(implicit_gemm_scratch)(const struct implicit_gemm *c);

struct implicit_gemm_run {
    const struct implicit_gemm *core;
    const float *x, *w;
    float *y;
    const struct ew_epilogue *end;
    const struct ew_batch_norm *norm; /* applied to x, see conv_norms; NULL: none */
    float *stats;                     /* as in ew_conv */
    void *scratch; /* implicit_gemm_scratch bytes, or with `norm` the normalised rows of a tile */
};

void EW_K(implicit_gemm_run)(const struct implicit_gemm_run *run, int64_t begin, int64_t end);

/* Position of an output pixel. */
struct pixel {
    int64_t x;     /* offset of its image in x */
    int64_t at[3]; /* input coordinates of tap 0, may be outside */
    int64_t y;     /* offset of the output pixel */
};

void EW_K(implicit_gemm_pixels)(const struct implicit_gemm *c, int64_t row, int count,
                                struct pixel *out);

/* Gathers [k0, k1) of k for these pixels; x is that of the group. */
void EW_K(implicit_gemm_gather)(const struct implicit_gemm *c, const float *x,
                                const struct pixel *p, int count, int64_t k0, int64_t k1,
                                float *panel);

/* Copies the input lines that one row of outputs reads into `line_buffer` (LINE_BUFFER_FLOATS),
 * with their padding, line_floats apart.  Requires c->line_buffer. */
void EW_K(implicit_gemm_fill_lines)(const struct implicit_gemm *c, const float *x, int64_t row,
                                    float *line_buffer);

/* Gathers output pixels [first, last) through a line buffer of LINE_BUFFER_FLOATS.  Requires
 * c->line_buffer. */
struct implicit_gemm_rows {
    int64_t first, last, k0, k1;
};

void EW_K(implicit_gemm_gather_lines)(const struct implicit_gemm *c, const float *x,
                                      struct implicit_gemm_rows rows, float *line_buffer,
                                      float *panel);

#endif
