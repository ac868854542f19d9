/* SPDX-License-Identifier: Apache-2.0 */
/* Forward convolution and dense layers: packing, and runs of the implicit GEMM. */
#include "backend/cpu/kernel/common/transpose_tile.h"
#include "backend/cpu/kernel/gemm/implicit_gemm.h"
#include "backend/cpu/kernel/norm/norm_stats.h"

size_t EW_K(conv_pack_size)(const struct ew_conv_shape *s)
{
    struct implicit_gemm c;
    EW_K(implicit_gemm_init)(&c, s);
    return (size_t)(s->groups * EW_K(implicit_gemm_group_size)(&c));
}

/* Packs outputs [0, width) of w, `step` floats apart, as [k][packed_width] with zero padding. */
static void pack_block(const float *w, int64_t step, int64_t k, int64_t width, float *out)
{
    const int64_t wide = packed_width(width);
    for (int64_t i = 0; i < k; i += LANES, out += LANES * wide)
        for (int64_t o = 0; o < wide; o += LANES) {
            vec column[LANES];
            transpose_load(w + o * step + i, step, width - o, k - i, column);
            for (int64_t j = 0; j < min_i64(LANES, k - i); j++)
                store_n(out + j * wide + o, column[j], wide - o);
        }
}

/* The same with unused taps left out: one row of taps at a time. */
static void pack_rows(const struct implicit_gemm *c, const float *w, int64_t width, float *out)
{
    const struct used *u = &c->used;
    const int64_t run = c->axis[2].taps * c->cg, step = u->all[0] * u->all[1] * u->all[2] * c->cg;
    for (int64_t t0 = 0; t0 < c->axis[0].taps; t0++)
        for (int64_t t1 = 0; t1 < c->axis[1].taps; t1++) {
            const int64_t row = (u->first[0] + t0) * u->all[1] + u->first[1] + t1;
            pack_block(w + (row * u->all[2] + u->first[2]) * c->cg, step, run, width, out);
            out += run * packed_width(width);
        }
}

/* Outputs [0, width) of w in pairs along k. */
static void pack_pairs(const struct implicit_gemm *c, const float *w, int64_t width, float *out)
{
    const int64_t wide = packed_width(width), lines = pair_lines(c), kc = c->k / lines;
    for (int64_t l = 0; l < lines; l++, w += kc)
        for (int64_t k = 0; k < kc; k += 2, out += 2 * wide)
            for (int64_t o = 0; o < wide; o++) {
                const float *from = w + o * c->k + k;
                out[2 * o] = o < width ? from[0] : 0;
                out[2 * o + 1] = o < width && k + 1 < kc ? from[1] : 0;
            }
}

int64_t EW_K(conv_pack_tiles)(const struct ew_conv_shape *s)
{
    return s->groups * block_count(s->cout / s->groups);
}

void EW_K(conv_pack)(const struct ew_conv_shape *s, const float *w, float *packed, int64_t begin,
                     int64_t end)
{
    struct implicit_gemm c;
    EW_K(implicit_gemm_init)(&c, s);
    const int64_t filter = c.used.all[0] * c.used.all[1] * c.used.all[2] * c.cg;
    for (int64_t i = begin; i < end; i++) {
        const int64_t g = i / c.blocks, b = i % c.blocks, o = b * NR, width = block_width(c.og, b);
        const float *from = w + (g * c.og + o) * filter;
        float *to = packed + g * EW_K(implicit_gemm_group_size)(&c) + o * c.k;
        if (c.pairs && b == c.blocks - 1)
            pack_pairs(&c, from, width, to);
        else if (c.used.trimmed)
            pack_rows(&c, from, width, to);
        else
            pack_block(from, c.k, c.k, width, to);
    }
}

#define NORMED_MOST 576 /* most channels: a tile's normalised rows stay in L2 */

/* Only if x is a matrix and each row is read by one tile, so it is normalised once. */
bool EW_K(conv_norms)(const struct ew_conv_shape *s)
{
    struct implicit_gemm c;
    EW_K(implicit_gemm_init)(&c, s);
    return c.flat && c.flat_y && c.groups == 1 && c.o_tiles == 1 && c.k <= NORMED_MOST;
}

int64_t EW_K(conv_tiles)(const struct ew_conv_shape *s)
{
    struct implicit_gemm c;
    EW_K(implicit_gemm_init)(&c, s);
    return c.tiles;
}

/* Tiles of other channels write other statistics.  Row tiles that share a split write the same
 * ones, so one range must cover them. */
struct ew_stats_split EW_K(conv_stats_split)(const struct ew_conv_shape *s)
{
    struct implicit_gemm c;
    EW_K(implicit_gemm_init)(&c, s);
    const int64_t rows = c.line_buffer ? c.axis[2].out : c.row_block * MR;
    if (!stats_splits(c.rows))
        return (struct ew_stats_split){0};
    return (struct ew_stats_split){
        .rows = c.split * rows,
        .tiles = c.split == 1 ? 1 : c.split * c.groups * c.o_tiles,
        .size = (size_t)(div_up(c.row_tiles, c.split) * stats_size(s->cout))};
}

size_t EW_K(conv_scratch)(const struct ew_conv_shape *s)
{
    struct implicit_gemm c;
    EW_K(implicit_gemm_init)(&c, s);
    return s->input_norm ? (size_t)(c.row_block * MR * c.k + LANES) * sizeof(float)
                         : EW_K(implicit_gemm_scratch)(&c);
}

void EW_K(conv_run)(const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)
{
    struct implicit_gemm core;
    EW_K(implicit_gemm_init)(&core, &c->shape);
    const struct implicit_gemm_run run = {.core = &core,
                                          .x = c->x,
                                          .w = c->w,
                                          .y = c->y,
                                          .end = &c->end,
                                          .norm = c->shape.input_norm ? c->norm : NULL,
                                          .stats = c->stats,
                                          .scratch = scratch};
    EW_K(implicit_gemm_run)(&run, begin, end);
}
