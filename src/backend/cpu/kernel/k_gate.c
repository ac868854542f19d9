/* SPDX-License-Identifier: Apache-2.0 */
/* Products and sums of a tensor with a factor or a bias a channel (squeeze and excite), products of
 * equal shapes, and their gradients. */
#include "backend/cpu/kernel/vec.h"

void EW_K(mul_run)(const struct ew_mul_map *m, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i += LANES) {
        const int64_t n = end - i;
        const vec v = load_n(m->a + i, n) * load_n(m->b + i, n);
        store_n(m->y + i, m->add ? load_n(m->y + i, n) + v : v, n);
    }
}

void EW_K(gate_run)(const struct ew_gate *g, int64_t begin, int64_t end)
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

#define WIDE 64 /* channels a tile of sums */

int64_t EW_K(gate_sum_tiles)(const struct ew_gate *g)
{
    return g->batch * div_up(g->channels, WIDE);
}

/* Over the rows of one image, n channels from c on: the sum of dy x, or of dy. */
INLINE vec gate_sum(const struct ew_gate *g, int64_t image, int64_t c, int64_t n)
{
    const int64_t at = image * g->rows * g->channels + c;
    vec all = {0};
    for (int64_t r = 0; r < g->rows; r += 128) { /* short sums first: small errors */
        const int64_t last = min_i64(r + 128, g->rows);
        vec sum[2] = {{0}};
        for (int64_t k = r; k < last; k++) {
            const vec dy = load_n(g->dy + at + k * g->channels, n);
            sum[k & 1] += g->sum ? dy : dy * load_n(g->x + at + k * g->channels, n);
        }
        all += sum[0] + sum[1];
    }
    return all;
}

void EW_K(gate_sum)(const struct ew_gate *g, int64_t begin, int64_t end)
{
    const int64_t parts = div_up(g->channels, WIDE);
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t image = tile / parts, first = tile % parts * WIDE;
        const int64_t last = min_i64(first + WIDE, g->channels);
        for (int64_t c = first; c < last; c += LANES) {
            const int64_t n = last - c;
            float *to = g->ds + image * g->channels + c;
            const vec sum = n < LANES ? gate_sum(g, image, c, n) : gate_sum(g, image, c, LANES);
            store_n(to, g->add ? load_n(to, n) + sum : sum, n);
        }
    }
}
