/* SPDX-License-Identifier: Apache-2.0 */
/* Max pool 2x2 fused behind a convolution of winograd_5x5.h, for an image and LANES outputs at a
 * time: the convolution's output stays in L1, and the pooled output is transposed to channels
 * first. */
#include "backend/cpu/kernel/common/transpose_tile.h"
#include "backend/cpu/kernel/pool/argmax.h"
#include "backend/cpu/kernel/winograd/winograd_5x5.h"

/* Offset of pixel t of a window in the image [high][wide][LANES]. */
INLINE int64_t pixel_of(int64_t wide, int64_t window, int t)
{
    const int64_t y = window / (wide / 2) * 2 + t / 2, x = window % (wide / 2) * 2 + t % 2;
    return (y * wide + x) * LANES;
}

static int64_t windows_of(const struct ew_conv_shape *s)
{
    return (int64_t)(s->axis[1].out / 2) * (s->axis[2].out / 2);
}

INLINE struct best largest(const float *image, int64_t wide, int64_t window, bool relu)
{
    struct best b = {.v = load(image + pixel_of(wide, window, 0))};
    UNROLL
    for (int t = 1; t < 4; t++)
        take_larger(&b, load(image + pixel_of(wide, window, t)), t);
    if (relu)
        take_positive(&b, EW_CONV_POOL_NO_GRAD);
    return b;
}

void EW_K(f5x5_pool)(const struct ew_conv_shape *s, const struct ew_winograd_5x5_pool *p,
                     const struct f5x5_part *at)
{
    const int64_t windows = windows_of(s), n = min_i64(LANES, s->cout - at->output);
    float *y = p->y + (at->image * s->cout + at->output) * windows;
    uint8_t *argmax = p->argmax + at->image * windows * s->cout + at->output;
    for (int64_t w = 0; w < windows; w += LANES) {
        const int64_t count = min_i64(LANES, windows - w);
        vec r[LANES] = {{0}};
        for (int64_t i = 0; i < count; i++) {
            const struct best b = largest(at->pixels, s->axis[2].out, w + i, p->relu);
            store_index(argmax + (w + i) * s->cout, b.tap, n);
            r[i] = b.v;
        }
        transpose_tile(r);
        for (int64_t o = 0; o < n; o++)
            store_n(y + o * windows + w, r[o], count);
    }
}

void EW_K(f5x5_unpool)(const struct ew_conv_shape *s, const struct ew_winograd_5x5_pool *p,
                       const struct f5x5_part *at)
{
    const int64_t high = s->axis[1].out, wide = s->axis[2].out, windows = windows_of(s);
    const int64_t n = min_i64(LANES, s->cout - at->output);
    const float *dy = p->dy + (at->image * s->cout + at->output) * windows;
    const uint8_t *argmax = p->argmax + at->image * windows * s->cout + at->output;
    if (high % 2 || wide % 2) /* some pixels are in no window */
        clear(at->pixels, high * wide * LANES);
    for (int64_t w = 0; w < windows; w += LANES) {
        vec r[LANES];
        transpose_load(dy + w, windows, n, windows - w, r);
        for (int64_t i = 0; i < min_i64(LANES, windows - w); i++) {
            const vint index = load_index(argmax + (w + i) * s->cout, n);
            UNROLL
            for (int t = 0; t < 4; t++)
                store(at->pixels + pixel_of(wide, w + i, t), where(is_tap(index, t), r[i]));
        }
    }
}
