/* SPDX-License-Identifier: Apache-2.0 */
/* Products and sums of a tensor with one value per channel (squeeze-and-excite, biases), products
 * of equal shapes, and their gradients. */
#include "backend/cpu/kernel/common/vec.h"

void EW_K(mul_run)(const struct ew_mul_map *m, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i += LANES) {
        const int64_t n = end - i;
        const vec v = load_n(m->a + i, n) * load_n(m->b + i, n);
        store_n(m->y + i, m->add ? load_n(m->y + i, n) + v : v, n);
    }
}

void EW_K(channel_scale_run)(const struct ew_channel_scale *g, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++) {
        const float *s = g->s + row / g->rows * g->channels;
        const float *x = g->x + row * g->channels;
        float *y = g->y + row * g->channels;
        for (int64_t c = 0; c < g->channels; c += LANES) {
            const int64_t n = g->channels - c;
            const vec a = load_n(x + c, n), b = load_n(s + c, n);
            const vec v = g->sum ? a + b : a * b;
            store_n(y + c, g->add ? load_n(y + c, n) + v : v, n);
        }
    }
}

#define WIDE 64 /* channels of a tile of sums */

int64_t EW_K(channel_scale_sum_tiles)(const struct ew_channel_scale *g)
{
    return g->batch * div_up(g->channels, WIDE);
}

#define GROUP 4 /* vectors of channels at a time */

/* Sums of dy x, or of dy, over the rows of one image: `count` vectors of channels from c on, the
 * last of which has n. */
INLINE void channel_sums(const struct ew_channel_scale *g, int64_t image, int64_t c,
                         const int count, int64_t n)
{
    const int64_t at = image * g->rows * g->channels + c;
    float *to = g->ds + image * g->channels + c;
    vec all[GROUP] = {{0}};
    for (int64_t r = 0; r < g->rows; r += 128) { /* short sums limit rounding errors */
        const int64_t last = min_i64(r + 128, g->rows);
        vec sum[GROUP] = {{0}};
        for (int64_t k = at + r * g->channels; k < at + last * g->channels; k += g->channels) {
            UNROLL
            for (int v = 0; v < count; v++) {
                const vec dy = load_n(g->dy + k + v * LANES, n);
                sum[v] += g->sum ? dy : dy * load_n(g->x + k + v * LANES, n);
            }
        }
        UNROLL
        for (int v = 0; v < count; v++)
            all[v] += sum[v];
    }
    UNROLL
    for (int v = 0; v < count; v++)
        store_n(to + v * LANES, g->add ? load_n(to + v * LANES, n) + all[v] : all[v], n);
}

void EW_K(channel_scale_sum)(const struct ew_channel_scale *g, int64_t begin, int64_t end)
{
    const int64_t parts = div_up(g->channels, WIDE);
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t image = tile / parts;
        const int64_t last = min_i64((tile % parts + 1) * WIDE, g->channels);
        int64_t c = tile % parts * WIDE;
        for (; c + GROUP * LANES <= last; c += GROUP * LANES)
            channel_sums(g, image, c, GROUP, LANES);
        for (; c + LANES <= last; c += LANES)
            channel_sums(g, image, c, 1, LANES);
        if (c < last)
            channel_sums(g, image, c, 1, last - c);
    }
}
