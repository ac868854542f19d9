/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norm: each row is normalised by itself, in three passes over cached data: mean, variance,
 * result.  Sums of long rows are divided into pieces, which are added in double. */
#include "backend/cpu/kernel/common/across.h"

#define PIECE_OF_SUM 1024 /* elements summed in float */
#define SPLITS       16   /* most splits of the rows, backward */

enum sum { SUM, SQUARES };

/* The sum of x, or of (x - mean)^2, over n elements. */
INLINE double row_total(const float *x, int64_t n, float mean, const enum sum kind)
{
    double all = 0;
    for (int64_t from = 0; from < n; from += PIECE_OF_SUM) {
        const int64_t to = min_i64(from + PIECE_OF_SUM, n);
        vec a = {0}, b = {0};
        int64_t i = from;
        for (; i + 2 * LANES <= to; i += 2 * LANES) {
            const vec u = load(x + i) - mean, v = load(x + i + LANES) - mean;
            a += kind == SUM ? u : u * u;
            b += kind == SUM ? v : v * v;
        }
        for (; i < to; i += LANES) {
            const vec u = fill_part(load_n(x + i, to - i) - mean, to - i, 0);
            a += kind == SUM ? u : u * u;
        }
        all += (double)across_sum(a + b);
    }
    return all;
}

/* The results of v, elements [i, i + n) of a row. */
INLINE void put_row(const struct ew_layer_norm *l, float *y, vec v, int64_t i, int64_t n,
                    float mean, float rstd)
{
    const vec bias = l->bias ? load_n(l->bias + i, n) : (vec){0};
    store_n(y + i, (v - mean) * rstd * load_n(l->scale + i, n) + bias, n);
}

void EW_K(layer_norm_run)(const struct ew_layer_norm *l, int64_t begin, int64_t end)
{
    const int64_t n = l->n;
    for (int64_t row = begin; row < end; row++) {
        const float *x = l->x + row * n;
        float *y = l->y + row * n;
        const float first = x[0]; /* subtracted, so that a large mean does not swamp the
                                   * differences */
        const float mean = (float)((double)first + row_total(x, n, first, SUM) / (double)n);
        const double variance = row_total(x, n, mean, SQUARES) / (double)n;
        const float rstd = (float)(1 / sqrt(variance + (double)l->eps));
        if (n < LANES) {
            put_row(l, y, load_n(x, n), 0, n, mean, rstd);
        } else {
            /* The last vector may overlap the one before it: y may be x, so it is read first. */
            const vec last = load(x + n - LANES);
            for (int64_t i = 0; i + LANES < n; i += LANES)
                put_row(l, y, load(x + i), i, LANES, mean, rstd);
            put_row(l, y, last, n - LANES, LANES, mean, rstd);
        }
        if (l->mean)
            l->mean[row] = mean;
        if (l->rstd)
            l->rstd[row] = rstd;
    }
}

int64_t EW_K(layer_norm_splits)(int64_t rows)
{
    return min_i64(rows, SPLITS);
}

/* Sums of g and g xhat over the row, g = dy scale; dy xhat and dy are added to the split's sums. */
static void back_sums(const struct ew_layer_norm *l, int64_t row, float *split, float sums[2])
{
    const float *x = l->x + row * l->n, *dy = l->dy + row * l->n;
    const float mean = l->mean[row], rstd = l->rstd[row];
    vec all[2] = {{0}};
    for (int64_t i = 0; i < l->n; i += LANES) {
        const int64_t n = l->n - i;
        const vec d = load_n(dy + i, n), xhat = (load_n(x + i, n) - mean) * rstd;
        const vec g = d * load_n(l->scale + i, n);
        all[0] += g;
        all[1] += g * xhat; /* lanes beyond the row have g = 0 */
        if (split) {
            store_n(split + i, load_n(split + i, n) + d * xhat, n);
            store_n(split + l->n + i, load_n(split + l->n + i, n) + d, n);
        }
    }
    sums[0] = across_sum(all[0]);
    sums[1] = across_sum(all[1]);
}

/* dx = rstd (g - mean(g) - xhat mean(g xhat)) */
static void back_row(const struct ew_layer_norm *l, int64_t row, const float sums[2])
{
    const float *x = l->x + row * l->n, *dy = l->dy + row * l->n;
    float *dx = l->dx + row * l->n;
    const float mean = l->mean[row], rstd = l->rstd[row], share = 1.0f / (float)l->n;
    const float from = share * sums[0], times = share * sums[1];
    for (int64_t i = 0; i < l->n; i += LANES) {
        const int64_t n = l->n - i;
        const vec xhat = (load_n(x + i, n) - mean) * rstd;
        const vec g = load_n(dy + i, n) * load_n(l->scale + i, n);
        const vec old = l->add_dx ? load_n(dx + i, n) : (vec){0};
        store_n(dx + i, old + rstd * (g - from - xhat * times), n);
    }
}

void EW_K(layer_norm_back)(const struct ew_layer_norm *l, int64_t begin, int64_t end)
{
    const int64_t splits = EW_K(layer_norm_splits)(l->rows);
    for (int64_t s = begin; s < end; s++) {
        float *split = l->partial ? l->partial + s * 2 * l->n : NULL;
        if (split)
            clear(split, 2 * l->n);
        for (int64_t row = l->rows * s / splits; row < l->rows * (s + 1) / splits; row++) {
            float sums[2];
            back_sums(l, row, split, sums);
            if (l->dx)
                back_row(l, row, sums);
        }
    }
}
