/* SPDX-License-Identifier: Apache-2.0 */
/* How the gradients of convolutions by tap pairs are cut into tiles, and where dy lies for them.
 *
 * dy is laid out twice, for the micro-kernel's rows to be images and to be outputs:
 *
 *   [out][panel of images][O][MR]      [out][block of MR outputs][images][MR] */
#ifndef EW_BACKEND_CPU_KERNEL_UNPACKED_TAP_PAIRS_GRAD_H
#define EW_BACKEND_CPU_KERNEL_UNPACKED_TAP_PAIRS_GRAD_H

#include "backend/cpu/kernel/unpacked/tap_pairs.h"

#define WANTED     8          /* tiles to aim at */
#define SMALL      (64 << 10) /* floats of a filter of which half as many have enough to do */
#define DX_FLOATS  (64 << 10) /* of a tile: 256 KiB */
#define CHUNK      (32 << 10) /* floats of taps that meet pixels at a time: 128 KiB */
#define CHUNK_MAX  4          /* blocks of outputs in it */
#define INPUTS     512        /* of a tile, at most */
#define INPUTS_FEW 64         /* of filters with several taps, all of which meet pixels */
#define CHUNK_FOLD 2          /* of folded filters; both as measured */

struct tap_pairs_plan {
    struct tap_pairs s;
    int64_t panels, rows;        /* of images, and of them in a panel */
    int64_t wide, c_tiles;       /* inputs of a tile */
    int64_t blocks, per, splits; /* of MR outputs; of them in a chunk; tiles along them */
    int64_t y_size;              /* floats of dy laid out with images as rows; the other way */
    int64_t t_size;
};

static inline void tap_pairs_plan_init(struct tap_pairs_plan *p, const struct ew_conv_shape *sh)
{
    struct tap_pairs *s = &p->s;
    EW_K(tap_pairs_init)(s, sh);
    EW_K(tap_pairs_fold)(s, sh);
    p->panels = div_up(s->batch, MR);
    p->rows = div_up(s->batch, p->panels);
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
