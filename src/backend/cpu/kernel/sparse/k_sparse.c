/* SPDX-License-Identifier: Apache-2.0 */
/* Dense layers and 1x1 convolutions on sparse x, forward.
 *
 * A tile is up to WIDE outputs of some rows.  Weights are read unpacked, and transposed SPAN inputs
 * at a time. */
#include "backend/cpu/kernel/sparse/sparse.h"

#define CHANNELS 128 /* fewest channels on both sides: with fewer, overhead dominates */
#define SAMPLE   64  /* rows sampled */

bool EW_K(sparse_fits)(const struct ew_conv_shape *s)
{
    for (int i = 0; i < 3; i++)
        if (s->axis[i].taps != 1 || s->axis[i].stride != 1 || s->axis[i].in != s->axis[i].out)
            return false;
    return s->groups == 1 && !s->input_norm && !s->x_step && s->cin >= CHANNELS &&
           s->cout >= CHANNELS && sparse_rows(s) >= SPAN / 2;
}

/* Samples rows far apart, which are not the same pixel of all images. */
double EW_K(sparse_share)(const float *a, int64_t rows, int64_t n, int64_t step)
{
    const int64_t count = min_i64(rows, SAMPLE);
    int64_t set = 0;
    for (int64_t k = 0; k < count; k++) {
        const int64_t r = (int64_t)((uint64_t)k * 2654435769u % (uint64_t)rows);
        for (int64_t i = 0; i < n; i += SPAN)
            set += __builtin_popcountll(nonzero_mask(a + r * step + i, min_i64(SPAN, n - i)));
    }
    return (double)set / (double)(count * n);
}

int64_t EW_K(sparse_tiles)(const struct ew_conv_shape *s)
{
    return div_up(sparse_rows(s), ROWS) * div_up(s->cout, tile_wide(s->cout));
}

size_t EW_K(sparse_scratch)(const struct ew_conv_shape *s)
{
    const int64_t rows = min_i64(sparse_rows(s), ROWS);
    return (size_t)((rows + SPAN) * WIDE) * sizeof(float);
}

static void finish(const struct ew_unpacked_conv *p, const float *sums, float *y, int64_t o,
                   int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) {
        vec v = load(sums + i);
        if (p->bias)
            v += load_n(p->bias + o + i, n - i);
        if (p->relu)
            v = vmax(v, (vec){0});
        store_n(y + o + i, v, n - i);
    }
}

static void run_tile(const struct ew_unpacked_conv *p, int64_t tile, float *scratch)
{
    const struct ew_conv_shape *s = &p->shape;
    const int64_t wide = tile_wide(s->cout), across = div_up(s->cout, wide);
    const int64_t first = tile / across * ROWS, rows = min_i64(ROWS, sparse_rows(s) - first);
    const int64_t o = tile % across * wide, outputs = min_i64(wide, s->cout - o);
    float *transposed = scratch, *sums = scratch + SPAN * wide;
    clear_wide(sums, rows, wide);
    clear_wide(transposed, SPAN, wide);
    for (int64_t k = 0; k < s->cin; k += SPAN) {
        const int64_t n = min_i64(SPAN, s->cin - k), next = k + SPAN;
        struct fetch prefetch = {.at = p->w + o * s->cin + next,
                                 .step = s->cin,
                                 .pieces = next < s->cin ? outputs : 0,
                                 .lines = div_up(min_i64(SPAN, s->cin - next), LINE)};
        transpose_block(block_of(p->w + o * s->cin + k, s->cin, outputs, n), transposed, wide);
        sparse_add(
            &(struct sparse_product){.a = block_of(p->x + first * s->cin + k, s->cin, rows, n),
                                     .b = transposed,
                                     .c = sums,
                                     .wide = wide,
                                     .prefetch = &prefetch});
    }
    for (int64_t r = 0; r < rows; r++)
        finish(p, sums + r * wide, p->y + (first + r) * y_step_of(s), o, outputs);
}

void EW_K(sparse_run)(const struct ew_unpacked_conv *p, int64_t begin, int64_t end, void *scratch)
{
    for (int64_t i = begin; i < end; i++)
        run_tile(p, i, scratch);
}
