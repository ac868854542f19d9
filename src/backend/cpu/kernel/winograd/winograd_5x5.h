/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd F(5x5, 5x5) for few channels, in training: 81 multiplications for 25 outputs instead of
 * 625.  Common parts of forward and backward.
 *
 *   forward:  y = A' ((G w G') . (B' x B)) A
 *   backward: dx = B ((G w G') . (A dy A')) B',  dw = G' ((B' x B) . (A dy A')) G
 *
 * With 6 inputs and 16 outputs transforms take as long as products, and winograd.h's method (panels
 * for the micro-kernel, phases) is slower.  Here a unit is one or a few images, whose transforms
 * stay in L1 and L2: lines of 9 products go from registers into the output transform, and backward
 * computes A dy A' once for both gradients.
 *
 * The interpolation points 0, +-1/2, +-7/8, +-5/4, 3 and infinity are the best of some 3700
 * symmetric sets of short fractions.  Largest float32 error over largest value of y, dx and dw, for
 * LeNet-5's second layer, worst of 72 runs: 1.6e-5, 2.1e-5, 1.7e-5; the mean is half of that.  With
 * 0, +-1, +-2, +-1/2 and 4: 3.7e-5, 6.1e-5, 6.1e-5 in two runs.  F(4x4, 5x5): 0.3e-5, but 144
 * multiplications for those 25 outputs, since it needs 3 x 3 tiles instead of 2 x 2. */
#ifndef EW_BACKEND_CPU_KERNEL_WINOGRAD_WINOGRAD_5X5_H
#define EW_BACKEND_CPU_KERNEL_WINOGRAD_WINOGRAD_5X5_H

#include "backend/cpu/kernel/common/vec.h"

#define F5X5_OUT    5 /* outputs of a line, and taps */
#define F5X5_POINTS 9
#define F5X5_UNIT   16 /* tiles of a unit: with fewer, filters are read too often */
#define F5X5_UNITS  4  /* least number of units, if there are as many images */

/* ---- Points ---- */

#define F5X5_D 3.0f

/* The points A, B and C of winograd_5x5_lines.h. */
INLINE float f5x5_at(int i)
{
    return i == 0 ? 0.5f : i == 1 ? 0.875f : 1.25f;
}

INLINE float f5x5_square(int i)
{
    return f5x5_at(i) * f5x5_at(i);
}

/* Sum s and product t of the squares of the other two points. */
INLINE float f5x5_s(int i)
{
    return f5x5_square((i + 1) % 3) + f5x5_square((i + 2) % 3);
}

INLINE float f5x5_t(int i)
{
    return f5x5_square((i + 1) % 3) * f5x5_square((i + 2) % 3);
}

#define F5X5_S (f5x5_square(0) + f5x5_s(0))
#define F5X5_Q (f5x5_t(0) + f5x5_t(1) + f5x5_t(2))
#define F5X5_P (f5x5_square(0) * f5x5_t(0))

/* 1 / product of the differences between a finite point and the other finite points. */
INLINE float f5x5_scale(int point)
{
    const int pair = (point - 1) / 2;
    const float d = F5X5_D, d2 = d * d;
    if (point == 0)
        return 1 / (d * F5X5_P);
    if (point == 7)
        return 1 / (d * (d2 - f5x5_square(0)) * (d2 - f5x5_square(1)) * (d2 - f5x5_square(2)));
    const float a = point % 2 ? f5x5_at(pair) : -f5x5_at(pair), a2 = a * a;
    return 1 / (2 * a2 * (a - d) * (a2 - f5x5_square((pair + 1) % 3)) *
                (a2 - f5x5_square((pair + 2) % 3)));
}

/* ---- Lines: vectors of LANES outputs, and of CHANNELS inputs, of which there are fewer ---- */

#if LANES > 8
#define CHANNELS 8
typedef hvec cvec;
#else
#define CHANNELS LANES
typedef vec cvec;
#endif
typedef float cvec_u __attribute__((vector_size(CHANNELS * 4), may_alias, aligned(4)));

/* Loads n inputs, then zeros. */
INLINE cvec channel_load(const float *p, int64_t n)
{
#if LANES > 8
    return half_load(p, n);
#else
    return load_n(p, n);
#endif
}

INLINE void channel_store(float *p, cvec v, int64_t n)
{
    if (n >= CHANNELS)
        *(cvec_u *)p = v;
    else
#if LANES > 8
        half_store(p, v, n);
#else
        store_part(p, v, n);
#endif
}

#define LINE_VEC   vec
#define LINE(name) line_##name
#include "backend/cpu/kernel/winograd/winograd_5x5_lines.h"
#undef LINE_VEC
#undef LINE
#define LINE_VEC   cvec
#define LINE(name) channel_##name
#include "backend/cpu/kernel/winograd/winograd_5x5_lines.h"
#undef LINE_VEC
#undef LINE

/* ---- Geometry ---- */

struct f5x5 {
    int64_t high, wide, tiles; /* tiles of an image */
    int64_t images, units;     /* images of a unit; units */
    int64_t unit;              /* tiles of a unit */
    int64_t cin, chunks;       /* inputs, also in vectors of CHANNELS */
    int64_t cout, blocks;      /* outputs, also in vectors of LANES */
    int64_t x_row, x_image;    /* strides in floats */
    int64_t line;              /* floats of a transformed line of an image, with padding and
                                * slack */
};

void EW_K(f5x5_init)(struct f5x5 *p, const struct ew_conv_shape *s);

/* B' x B of `images` images: v is [line of points][chunk][tile of the unit][point][CHANNELS],
 * undefined beyond cin.  `lines`: f5x5_lines floats of scratch, cleared once. */
void EW_K(f5x5_input)(const struct f5x5 *p, const struct ew_conv_shape *s, const float *x,
                      int64_t images, float *lines, float *v);

/* LANES outputs of an image, [out][out][LANES]. */
struct f5x5_part {
    int64_t image, output; /* first of LANES outputs */
    float *pixels;
};

INLINE int64_t f5x5_pixels(const struct f5x5 *p)
{
    return p->tiles * F5X5_OUT * F5X5_OUT * LANES;
}

/* Forward: writes the pool's y and argmax.  Backward: reads its dy. */
void EW_K(f5x5_pool)(const struct ew_conv_shape *s, const struct ew_winograd_5x5_pool *p,
                     const struct f5x5_part *at);
void EW_K(f5x5_unpool)(const struct ew_conv_shape *s, const struct ew_winograd_5x5_pool *p,
                       const struct f5x5_part *at);

/* All points of a line of a tile are contiguous, with strides known at compile time: vectors of
 * CHANNELS inputs or LANES outputs. */
#define F5X5_INPUTS  (F5X5_POINTS * CHANNELS)
#define F5X5_OUTPUTS (F5X5_POINTS * LANES)
#define F5X5_HALF    (F5X5_POINTS * F5X5_OUT * LANES) /* a tile transformed along one axis */

/* Floats of all lines of points, and of one line of zeros. */
INLINE int64_t f5x5_lines(const struct f5x5 *p)
{
    return (F5X5_POINTS + 1) * p->line;
}

INLINE int64_t f5x5_products(const struct f5x5 *p)
{
    return F5X5_POINTS * p->chunks * p->unit * F5X5_INPUTS;
}

#endif
