/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of a batch norm followed by squeeze-and-excite: its output y times a factor computed
 * from y's averages.
 *
 * With z = norm(x), y = act(z) and dm the product's gradient, the factor's gradient is the sum of
 * dm y over an image.  The gradient of y is dy = dm factor + average_grad, where average_grad,
 * which comes through the averages, depends on the factor's gradient.  But the norm's two sums are
 * linear in factor and average_grad, with coefficients that are sums of dm act'(z), act'(z), and
 * each of these times x.  So one pass computes all five sums of each image, and the reader of dy
 * computes it line by line.  This reads two tensors; separate steps for product, average and norm
 * read and write eight. */
#include "backend/cpu/kernel/common/act.h"

#define WIDE 256 /* channels of a tile */
#define ROWS 16  /* rows summed separately, which limits rounding errors */
#define SUMS 5

int64_t EW_K(squeeze_excite_tiles)(const struct ew_squeeze_excite_norm *g)
{
    return g->norm->rows / g->norm->image * div_up(g->norm->channels, WIDE);
}

/* Rows [row, last), n channels from c on, summed to sums[.][at]. */
struct part {
    int64_t row, last, c, n, at;
    float (*sums)[WIDE];
};

INLINE void add_part(const struct ew_batch_norm *b, const struct part *p, const enum ew_act act)
{
    const int64_t n = p->n;
    const vec mean = load_n(b->mean + p->c, n), bias = load_n(b->bias + p->c, n);
    const vec gain = load_n(b->rstd + p->c, n) * load_n(b->scale + p->c, n);
    const int64_t ahead = 2 * ROWS * b->channels; /* hardware prefetchers do not follow columns of
                                                   * rows */
    vec s[SUMS] = {{0}};
    for (int64_t row = p->row; row < p->last; row++) {
        const int64_t at = row * b->channels + p->c;
        __builtin_prefetch(b->x + at + ahead, 0, 2);
        __builtin_prefetch(b->dy + at + ahead, 0, 2);
        const vec x = load_n(b->x + at, n) - mean, z = x * gain + bias, dm = load_n(b->dy + at, n);
        const vec slope = vact_back(act, z, splat(1.0f), b->lo, b->hi), dz = dm * slope;
        s[0] += dm * vact(act, z, b->lo, b->hi);
        s[1] += dz;
        s[2] += slope;
        s[3] += dz * x;
        s[4] += slope * x;
    }
    for (int i = 0; i < SUMS; i++) {
        float *to = p->sums[i] + p->at;
        store(to, load(to) + s[i]);
    }
}

/* The sums of one image, channels from `first` on. */
INLINE void sum_tile(const struct ew_batch_norm *b, int64_t image, int64_t first,
                     float sums[SUMS][WIDE], const enum ew_act act)
{
    const int64_t channels = min_i64(b->channels - first, WIDE), end = (image + 1) * b->image;
    for (int64_t row = image * b->image; row < end; row += ROWS) {
        struct part p = {.row = row, .last = min_i64(row + ROWS, end), .c = first, .sums = sums};
        p.n = LANES;
        for (; p.at + LANES <= channels; p.at += LANES, p.c += LANES)
            add_part(b, &p, act);
        p.n = channels - p.at;
        if (p.n > 0)
            add_part(b, &p, act);
    }
}

void EW_K(squeeze_excite_run)(const struct ew_squeeze_excite_norm *g, int64_t begin, int64_t end)
{
    const struct ew_batch_norm b = *g->norm;
    const int64_t channel_blocks = div_up(b.channels, WIDE), size = b.rows / b.image * b.channels;
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t image = tile / channel_blocks, first = tile % channel_blocks * WIDE;
        const int64_t n = min_i64(b.channels - first, WIDE), at = image * b.channels + first;
        _Alignas(64) float sums[SUMS][WIDE] = {{0}};
#define TILE(act) sum_tile(&b, image, first, sums, act)
        BY_ACT(TILE, &b)
#undef TILE
        for (int64_t c = 0; c < n; c++)
            g->dfactor[at + c] = sums[0][c] + (g->add ? g->dfactor[at + c] : 0);
        for (int i = 1; i < SUMS; i++)
            copy(g->sums + (i - 1) * size + at, sums[i], n);
    }
}

void EW_K(squeeze_excite_total)(const struct ew_squeeze_excite_norm *g, float *to)
{
    const struct ew_batch_norm *b = g->norm;
    const int64_t images = b->rows / b->image, size = images * b->channels;
    for (int64_t c = 0; c < b->channels; c++) {
        double total[2] = {0, 0};
        for (int64_t at = c; at < size; at += b->channels) {
            const double factor = (double)b->factor[at];
            const double average_grad = (double)b->average_grad[at] * (double)b->average_scale;
            for (int i = 0; i < 2; i++) {
                const float *s = g->sums + 2 * i * size + at;
                total[i] += factor * (double)s[0] + average_grad * (double)s[size];
            }
        }
        to[c] = (float)total[0];
        to[b->channels + c] = (float)total[1];
    }
}
