/* SPDX-License-Identifier: Apache-2.0 */
/* Partitioning of wgrad by Winograd (k_winograd_wgrad.c): form, blocks of image tiles, phases,
 * layout of V, Y and U. */
#ifndef EW_BACKEND_CPU_KERNEL_WINOGRAD_WINOGRAD_WGRAD_H
#define EW_BACKEND_CPU_KERNEL_WINOGRAD_WINOGRAD_WGRAD_H

#include "backend/cpu/kernel/gemm/micro.h"
#include "backend/cpu/kernel/winograd/winograd.h"

#define PRODUCTS    (WINO_POINTS * WINO_POINTS)
#define TILES       128        /* image tiles of a block */
#define TILES_FEW   256        /* the same with few channels, where L2 holds more */
#define FEW         (384 * 36) /* few: products * (cin + cout) */
#define TILES_WHOLE 32         /* most image tiles for `whole` */
#define GROUP       8          /* image tiles that one work tile transforms */
#define O_SPLIT     16         /* blocks of MR outputs of a work tile */
#define APART       (5 * LINE) /* padding between products, so that they do not share cache sets */

struct wgrad_plan {
    struct wino_form form;
    int64_t products, taps;
    int64_t cin;           /* channels of a cell */
    int tap;               /* tap in time */
    int64_t frame, images; /* first output frame for which the tap reads a frame; all such images */
    struct wino_grid grid;
    int64_t blocks, block;            /* blocks of image tiles; tiles of a block */
    bool whole;                       /* a work tile is a block of outputs, with all products */
    int64_t o_blocks, rows, o_splits; /* blocks of outputs; outputs of a block; work tiles along the
                                       * outputs */
    int64_t u_row;                    /* channels in whole vectors */
    int64_t v_row, v_size;            /* floats of an image tile in V; of a product's V */
    int64_t y_block;                  /* floats of a block of outputs in Y, MR for each image
                                       * tile */
    int64_t step;                     /* floats between products of V and Y */
    int64_t u_column;                 /* floats of NR channels in U, of all outputs or of a block */
    int64_t u_step;                   /* floats between products of U */
};

/* The output frames [begin, end) for which a tap reads a frame. */
struct span {
    int64_t begin, end;
};

static inline struct span seen_by(const struct ew_conv_shape *s, int tap)
{
    const struct ew_conv_axis *t = &s->axis[0];
    const int64_t before = max_i64(0, div_up(t->pad - tap, t->stride));
    const int64_t last = t->in - 1 + t->pad - tap;
    return (struct span){before, last < 0 ? 0 : min_i64(t->out, last / t->stride + 1)};
}

/* Estimated cost of all taps. */
static inline double form_cost(const struct ew_conv_shape *s, struct wino_form f)
{
    struct wino_grid g;
    grid_init(&g, s, images_of(s), f.out);
    const double products = points_of(f) * points_of(f), cout = s->cout, taps = time_taps(s);
    const double cin = (double)frame_channels(s);
    const double tiles = (double)g.tiles * EW_K(winograd_seen)(s);
    /* A transform takes about seven operations for each point; U is read and written once for each
     * block. */
    return taps * products *
           (tiles * (cin * cout * (1 + 2.0 / TILES) + 7 * (cin + cout * LANES / MR)) +
            cin * cout * 6);
}

/* A tap that reads a frame for every output, from whose Y the bias gradient is computed; -1: none,
 * or some tap reads no frame at all. */
static inline int bias_tap(const struct ew_conv_shape *s)
{
    int found = -1;
    for (int tap = 0; tap < time_taps(s); tap++) {
        const struct span seen = seen_by(s, tap);
        if (seen.begin >= seen.end)
            return -1;
        if (seen.begin == 0 && seen.end == s->axis[0].out)
            found = tap;
    }
    return found;
}

static inline struct wino_form form_of(const struct ew_conv_shape *s)
{
    return wino_pick(s, form_cost);
}

/* Most image tiles of a block.  Small problems get smaller blocks: they are so short that V and Y
 * start outside of the caches. */
static inline int64_t block_of(const struct wgrad_plan *p, const struct ew_conv_shape *s)
{
    if (p->products * (p->cin + s->cout) > FEW)
        return TILES;
    return p->grid.tiles > TILES_FEW ? TILES_FEW : TILES_FEW / 4;
}

static inline void wgrad_plan_init(struct wgrad_plan *p, const struct ew_conv_shape *s, int tap)
{
    const struct span seen = seen_by(s, tap);
    p->tap = tap;
    p->frame = seen.begin;
    p->images = (seen.end - seen.begin) * s->batch;
    p->form = form_of(s);
    p->products = points_of(p->form) * points_of(p->form);
    p->taps = p->form.taps * p->form.taps;
    p->cin = frame_channels(s);
    grid_init(&p->grid, s, p->images, p->form.out);
    p->blocks = div_up(p->grid.tiles, block_of(p, s));
    p->block = p->blocks ? div_up(p->grid.tiles, p->blocks) : 0;
    p->whole = p->blocks == 1 && p->block <= TILES_WHOLE && !has_cells(s);
    p->o_blocks = div_up(s->cout, MR);
    p->rows = div_up(s->cout, max_i64(p->o_blocks, 1));
    p->o_splits = div_up(p->o_blocks, O_SPLIT);
    p->u_row = div_up(p->cin, LANES) * LANES;
    p->v_row = (div_up(p->u_row, LINE) | 1) * LINE; /* odd: rows do not share cache sets */
    p->v_size = p->block * p->v_row;
    p->y_block = p->block * MR;
    p->step = p->v_size + p->o_blocks * p->y_block + APART;
    p->u_column = (p->whole ? p->rows : s->cout) * NR;
    p->u_step = div_up(p->u_row, NR) * p->u_column + APART;
}

/* Floats of the bias gradient, which is stored before V, Y and U and kept from tap to tap. */
static inline int64_t bias_size(const struct ew_conv_shape *s)
{
    return div_up(s->cout, LINE) * LINE;
}

/* Floats of zeros, for pixels outside of the image, or of one output's filter. */
static inline int64_t zeros_size(const struct wgrad_plan *p, const struct ew_conv_shape *s)
{
    return max_i64(max_i64(p->cin, s->cout), p->taps * p->cin) + LANES;
}

/* Two phases for each block, transforms and products; then the taps, unless `whole`. */
static inline int64_t wgrad_phases(const struct wgrad_plan *p)
{
    return 2 * p->blocks + !p->whole;
}

/* Plans the tap in time that a phase belongs to; returns the phase within that tap. */
static inline int64_t wgrad_phase_init(struct wgrad_plan *p, const struct ew_conv_shape *s,
                                       int64_t phase)
{
    wgrad_plan_init(p, s, 0);
    for (int tap = 1; tap < time_taps(s) && phase >= wgrad_phases(p); tap++) {
        phase -= wgrad_phases(p);
        wgrad_plan_init(p, s, tap);
    }
    return phase;
}

#endif
