/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions on small feature maps, backward: transposes dy to the layouts of tap_pairs_grad.h
 * for k_tap_pairs_grad.c. */
#include "backend/cpu/kernel/common/transpose_tile.h"
#include "backend/cpu/kernel/unpacked/tap_pairs_grad.h"

#define TILE_OUTPUTS (4 * MR) /* outputs of a tile */

int64_t EW_K(tap_pairs_grad_transpose_tiles)(const struct ew_conv_shape *s)
{
    struct tap_pairs_plan p;
    tap_pairs_plan_init(&p, s);
    return (p.s.folded ? 1 : p.s.outs) * div_up(p.s.cout, TILE_OUTPUTS);
}

/* Transposes images [n, n + count) of a panel, count <= LANES. */
static void transpose_images(const struct tap_pairs_plan *p, const struct ew_unpacked_grads *g,
                             int64_t out, int64_t first, int64_t n, int64_t count)
{
    const int64_t step = p->s.outs * p->s.cout, last = min_i64(first + TILE_OUTPUTS, p->s.cout);
    const int64_t r = n % p->rows;
    for (int64_t o = first; o < last; o += LANES) {
        vec v[LANES];
        transpose_load(g->filter.dy + n * step + out * p->s.cout + o, step, count, last - o, v);
        float *to = g->shared + images_at(p, out, n / p->rows, o) + r;
        for (int64_t j = 0; j < min_i64(LANES, last - o); j++)
            store_n(to + j * MR, v[j], min_i64(MR - r, LANES));
    }
}

static void transpose_outputs(const struct tap_pairs_plan *p, const struct ew_unpacked_grads *g,
                              int64_t out, int64_t block)
{
    const int64_t o = block * MR, width = min_i64(MR, p->s.cout - o);
    for (int64_t n = 0; n < p->s.batch; n++) {
        const float *from = g->filter.dy + (n * p->s.outs + out) * p->s.cout + o;
        float *to = g->shared + outputs_at(p, out, block) + n * MR;
        for (int64_t i = 0; i < width; i += LANES)
            store_n(to + i, load_n(from + i, width - i), width - i);
    }
}

/* The same with folding, for all positions. */
static void fold_images(const struct tap_pairs_plan *p, const struct ew_unpacked_grads *g,
                        int64_t first, int64_t n, int64_t count)
{
    const int64_t cout = p->s.cout, last = min_i64(first + TILE_OUTPUTS, cout), r = n % p->rows;
    for (int64_t o = first; o < last; o += LANES) {
        vec v[SQUARE][LANES];
        for (int64_t i = 0; i < SQUARE; i++)
            transpose_load(g->filter.dy + (n * SQUARE + i) * cout + o, SQUARE * cout, count,
                           last - o, v[i]);
        for (int64_t j = 0; j < min_i64(LANES, last - o); j++) {
            const vec pixels[SQUARE] = {v[0][j], v[1][j], v[2][j], v[3][j]};
            vec out[FOLDED];
            fold_pixels(pixels, out, true);
            for (int64_t k = 0; k < FOLDED; k++)
                store_n(g->shared + images_at(p, k, n / p->rows, o + j) + r, out[k],
                        min_i64(MR - r, LANES));
        }
    }
}

static void fold_outputs(const struct tap_pairs_plan *p, const struct ew_unpacked_grads *g,
                         int64_t block)
{
    const int64_t cout = p->s.cout, width = min_i64(MR, cout - block * MR);
    for (int64_t n = 0; n < p->s.batch; n++)
        for (int64_t i = 0; i < width; i += LANES) {
            const float *from = g->filter.dy + n * SQUARE * cout + block * MR + i;
            vec pixels[SQUARE], out[FOLDED];
            for (int64_t k = 0; k < SQUARE; k++)
                pixels[k] = load_n(from + k * cout, width - i);
            fold_pixels(pixels, out, true);
            for (int64_t k = 0; k < FOLDED; k++)
                store_n(g->shared + outputs_at(p, k, block) + n * MR + i, out[k], width - i);
        }
}

void EW_K(tap_pairs_grad_transpose)(const struct ew_unpacked_grads *g, int64_t begin, int64_t end)
{
    struct tap_pairs_plan p;
    tap_pairs_plan_init(&p, &g->filter.shape);
    const int64_t groups = div_up(p.s.cout, TILE_OUTPUTS);
    for (int64_t i = begin; i < end; i++) {
        const int64_t out = i / groups, first = i % groups * TILE_OUTPUTS;
        for (int64_t n = 0, count; n < p.s.batch; n += count) {
            count = min_i64(min_i64(LANES, p.rows - n % p.rows), p.s.batch - n);
            if (p.s.folded)
                fold_images(&p, g, first, n, count);
            else
                transpose_images(&p, g, out, first, n, count);
        }
        for (int64_t o = first; o < min_i64(first + TILE_OUTPUTS, p.s.cout); o += MR)
            if (p.s.folded)
                fold_outputs(&p, g, o / MR);
            else
                transpose_outputs(&p, g, out, o / MR);
    }
}
