/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of convolutions by tap pairs: tiles, and layouts of dy.
 *
 * dy is transposed twice, with images and with outputs as rows of the micro-kernel:
 *
 *   [out][panel of images][O][MR]      [out][block of MR outputs][images][MR] */
#ifndef EW_BACKEND_CPU_KERNEL_UNPACKED_TAP_PAIRS_GRAD_H
#define EW_BACKEND_CPU_KERNEL_UNPACKED_TAP_PAIRS_GRAD_H

#include "backend/cpu/kernel/unpacked/tap_pairs.h"

#define WANTED     8          /* wanted tiles */
#define SMALL      (64 << 10) /* floats of a filter below which half as many tiles are enough */
#define DX_FLOATS  (64 << 10) /* most floats of a tile's dx: 256 KiB */
#define CHUNK      (32 << 10) /* floats of used taps in a chunk: 128 KiB */
#define CHUNK_MAX  4          /* most blocks of outputs in a chunk */
#define INPUTS     512        /* most inputs of a tile */
#define INPUTS_FEW 64         /* the same for filters with several taps, all used */
#define CHUNK_FOLD 2          /* CHUNK_MAX of folded filters; both are measured */

struct tap_pairs_plan {
    struct tap_pairs s;
    int64_t panels, rows;        /* panels of images; images in a panel */
    int64_t wide, c_tiles;       /* inputs of a tile; tiles along them */
    int64_t blocks, per, splits; /* blocks of MR outputs; blocks in a chunk; tiles along the
                                  * outputs */
    int64_t y_size;              /* floats of dy with images as rows; with outputs as rows */
    int64_t t_size;
};

/* Images of a panel.  AVX2 multiplies 6 at a time, and a last pass of fewer than 4 takes as long as
 * one of 4: 16 images are 12 and 4, not twice 8. */
static inline int64_t panel_rows(int64_t batch)
{
    const int64_t panels = div_up(batch, MR), even = div_up(batch, panels);
#if defined(EW_ISA_IS_avx2)
    const int64_t pass = MR / 2;
    if (div_up(batch, pass) < panels * div_up(even, pass))
        return MR;
#endif
    return even;
}

static inline void tap_pairs_plan_init(struct tap_pairs_plan *p, const struct ew_conv_shape *sh)
{
    struct tap_pairs *s = &p->s;
    EW_K(tap_pairs_init)(s, sh);
    EW_K(tap_pairs_fold)(s, sh);
    p->panels = div_up(s->batch, MR);
    p->rows = panel_rows(s->batch);
    const int64_t most = min_i64(s->taps > 1 && s->used == s->taps ? INPUTS_FEW : INPUTS,
                                 max_i64(DX_FLOATS / (s->ins * s->batch) / NR, 1) * NR);
    p->c_tiles = div_up(s->cin, most);
    p->wide = div_up(div_up(s->cin, p->c_tiles), NR) * NR;
    p->c_tiles = div_up(s->cin, p->wide);
    p->blocks = div_up(s->cout, MR);
    const int64_t wanted = s->cout * s->taps * s->cin < SMALL ? WANTED / 2 : WANTED;
    p->splits = min_i64(max_i64(wanted / p->c_tiles, 1), p->blocks);
    p->per = min_i64(max_i64(CHUNK / (max_i64(s->used, 1) * p->wide * MR), 1),
                     s->folded ? CHUNK_FOLD : CHUNK_MAX);
    p->y_size = s->outs * p->panels * s->cout * MR;
    p->t_size = s->outs * p->blocks * s->batch * MR;
}

static inline int64_t images_at(const struct tap_pairs_plan *p, int64_t out, int64_t panel,
                                int64_t o)
{
    return ((out * p->panels + panel) * p->s.cout + o) * MR;
}

static inline int64_t outputs_at(const struct tap_pairs_plan *p, int64_t out, int64_t block)
{
    return p->y_size + (out * p->blocks + block) * p->s.batch * MR;
}

#endif
