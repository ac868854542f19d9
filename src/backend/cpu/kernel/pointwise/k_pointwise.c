/* SPDX-License-Identifier: Apache-2.0 */
/* Memory-bound kernels: activations, additions, scale and shift, transposes, column sums.  Results
 * do not depend on how a range is divided: partial vectors use the same operations as whole
 * ones. */
#include "backend/cpu/kernel/common/act.h"
#include "backend/cpu/kernel/common/transpose_tile.h"

void EW_K(act_run)(const struct ew_act_map *a, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i += LANES)
        store_n(a->y + i, vact(a->act, load_n(a->x + i, end - i), a->lo, a->hi), end - i);
}

void EW_K(act_back)(const struct ew_act_map *a, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i += LANES) {
        const int64_t n = end - i;
        const vec x = load_n(a->x + i, n);
        const vec slope = a->from_output ? vact_slope_of_output(a->act, x, a->lo, a->hi)
                                         : vact_slope(a->act, x, a->lo, a->hi);
        const vec old = a->add ? load_n(a->dx + i, n) : (vec){0};
        store_n(a->dx + i, old + load_n(a->dy + i, n) * slope, n);
    }
}

void EW_K(add_run)(const struct ew_add_map *a, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i += LANES) {
        const int64_t n = end - i;
        const vec sum = load_n(a->a + i, n) + load_n(a->b + i, n);
        store_n(a->y + i, vact(a->act, sum, a->lo, a->hi), n);
    }
}

void EW_K(exp_run)(const float *x, float *y, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i += LANES)
        store_n(y + i, vexp(load_n(x + i, end - i)), end - i);
}

void EW_K(scale_shift)(const struct ew_scale_shift *s, int64_t begin, int64_t end)
{
    const struct ew_epilogue e = {.add = s->add, .act = s->act, .lo = s->lo, .hi = s->hi};
    for (int64_t row = begin; row < end; row++) {
        for (int64_t c = 0; c < s->channels; c += LANES) {
            const int64_t n = s->channels - c, at = row * s->channels + c;
            const vec x = load_n(s->x + at, n) * load_n(s->scale + c, n) + load_n(s->shift + c, n);
            put(&e, s->y, at, x, n);
        }
    }
}

/* ---- Transposes ---- */

int64_t EW_K(transpose_tiles)(const struct ew_transpose *t)
{
    return t->batch * div_up(t->rows, LANES);
}

/* Transposes LANES rows to LANES columns: reads whole lines, writes parts of lines. */
static void transpose_rows(const struct ew_transpose *t, const float *in, int64_t i0, float *out)
{
    const int64_t rows = min_i64(LANES, t->rows - i0);
    const vec bias = t->bias ? load_n(t->bias + i0, rows) : (vec){0};
    for (int64_t j = 0; j < t->columns; j += LANES) {
        vec r[LANES];
        transpose_load(in + i0 * t->columns + j, t->columns, rows, t->columns - j, r);
        for (int64_t i = 0; i < min_i64(LANES, t->columns - j); i++)
            store_n(out + (j + i) * t->rows + i0, r[i] + bias, rows);
    }
}

#define FEW 4

/* Stores lanes [first, first + FEW), first a multiple of FEW. */
INLINE void store_few(float *p, vec v, const int first)
{
    typedef float few __attribute__((vector_size(FEW * sizeof(float)), aligned(4), may_alias));
#if defined(EW_ISA_IS_avx512)
    const __m512 w = (__m512)v;
    *(few *)p = (few)(first == 0   ? _mm512_castps512_ps128(w)
                      : first == 4 ? _mm512_extractf32x4_ps(w, 1)
                      : first == 8 ? _mm512_extractf32x4_ps(w, 2)
                                   : _mm512_extractf32x4_ps(w, 3));
#elif defined(EW_ISA_IS_avx2)
    const __m256 w = (__m256)v;
    *(few *)p = (few)(first ? _mm256_extractf128_ps(w, 1) : _mm256_castps256_ps128(w));
#else
    *(few *)p = (few)v;
#endif
}

/* Transposes few rows, such as the colours of an image, in tiles of FEW x FEW.  Each column is
 * stored as FEW floats, whose excess the next one overwrites: 3 x 224 x 224 takes 29 us with AVX2
 * on a Zen 4, and 300 us with masked stores. */
INLINE void transpose_few(const struct ew_transpose *t, const float *in, float *out, const int rows)
{
    int64_t j = 0;
    for (; j + LANES + FEW <= t->columns; j += LANES) {
        vec r[FEW];
        UNROLL
        for (int i = 0; i < FEW; i++)
            r[i] = i < rows ? load(in + i * t->columns + j) + (t->bias ? t->bias[i] : 0) : (vec){0};
        TRANSPOSE_STAGE_OF(1, r, FEW)
        TRANSPOSE_STAGE_OF(2, r, FEW)
        UNROLL
        for (int c = 0; c < LANES; c++)
            store_few(out + (j + c) * rows, r[c % FEW], c / FEW * FEW);
    }
    for (; j < t->columns; j++)
        for (int i = 0; i < rows; i++)
            out[j * rows + i] = in[i * t->columns + j] + (t->bias ? t->bias[i] : 0);
}

/* True if there are so few rows that it was done. */
static bool transposed_few(const struct ew_transpose *t, const float *in, float *out)
{
    if (t->rows == 2)
        transpose_few(t, in, out, 2);
    else if (t->rows == 3)
        transpose_few(t, in, out, 3);
    else if (t->rows == 4)
        transpose_few(t, in, out, 4);
    return t->rows >= 2 && t->rows <= 4;
}

void EW_K(transpose_run)(const struct ew_transpose *t, int64_t begin, int64_t end)
{
    const int64_t row_blocks = div_up(t->rows, LANES);
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t matrix = tile / row_blocks * t->rows * t->columns;
        if (transposed_few(t, t->in + matrix, t->out + matrix))
            continue;
        transpose_rows(t, t->in + matrix, tile % row_blocks * LANES, t->out + matrix);
    }
}

/* ---- Column sums ---- */

#define LEVEL 128 /* rows summed separately, which limits rounding errors */
#define WIDE  4   /* vectors at a time */

/* One vector of x; with y it is masked by y > 0 and stored again. */
INLINE vec masked(float *x, const float *y, int64_t n)
{
    if (!y)
        return load_n(x, n);
    const vec v = keep(load_n(y, n) > 0.0f, load_n(x, n));
    store_n(x, v, n);
    return v;
}

/* Adds one row of `vectors` vectors, the last of which has n lanes. */
INLINE void add_row(vec *sum, float *x, const float *y, const int vectors, int64_t n)
{
    UNROLL
    for (int v = 0; v < vectors; v++)
        sum[v] += masked(x + v * LANES, y ? y + v * LANES : NULL, v < vectors - 1 ? LANES : n);
}

/* Four accumulators for each vector, over LEVEL rows at a time. */
INLINE void column_sum(const struct ew_column_sums *s, int64_t c, const int vectors, int64_t n,
                       const bool mask)
{
    vec all[WIDE] = {{0}};
    for (int64_t row = 0; row < s->rows; row += LEVEL) {
        vec sum[4][WIDE] = {{{0}}};
        const int64_t rows = min_i64(LEVEL, s->rows - row), first = row * s->step + c;
        float *x = s->x + first;
        const float *y = mask ? s->y + first : x;
        for (int64_t r = 0; r + 4 <= rows; r += 4, x += 4 * s->step, y += 4 * s->step) {
            UNROLL
            for (int i = 0; i < 4; i++)
                add_row(sum[i], x + i * s->step, mask ? y + i * s->step : NULL, vectors, n);
        }
        for (int64_t r = rows / 4 * 4; r < rows; r++, x += s->step, y += s->step)
            add_row(sum[0], x, mask ? y : NULL, vectors, n);
        UNROLL
        for (int v = 0; v < vectors; v++)
            all[v] += (sum[0][v] + sum[1][v]) + (sum[2][v] + sum[3][v]);
    }
    UNROLL
    for (int v = 0; v < vectors; v++) {
        float *out = s->out + c + v * LANES;
        const int64_t lanes = v < vectors - 1 ? LANES : n;
        store_n(out, s->add ? load_n(out, lanes) + all[v] : all[v], lanes);
    }
}

/* Fewer channels than lanes: `channels` vectors hold LANES rows, and lanes are assigned to channels
 * at the end. */
static void narrow_sums(const struct ew_column_sums *s)
{
    const int64_t channels = s->channels, block = channels * LANES, n = s->rows * channels;
    float all[LANES] = {0};
    for (int64_t row = 0; row < s->rows; row += LEVEL * LANES) {
        const int64_t last = min_i64(n, (row + LEVEL * LANES) * channels);
        vec sum[LANES] = {{0}};
        for (int64_t at = row * channels; at < last; at += block)
            for (int64_t v = 0; v < channels && at + v * LANES < last; v++)
                sum[v] += masked(s->x + at + v * LANES, s->y ? s->y + at + v * LANES : NULL,
                                 last - at - v * LANES);
        for (int64_t i = 0; i < block; i++)
            all[i % channels] += sum[i / LANES][i % LANES];
    }
    for (int64_t c = 0; c < channels; c++)
        s->out[c] = s->add ? s->out[c] + all[c] : all[c];
}

void EW_K(column_sums)(const struct ew_column_sums *s, int64_t begin, int64_t end)
{
    if (s->channels < LANES && begin == 0 && end == s->channels && s->step == s->channels) {
        narrow_sums(s);
        return;
    }
    int64_t c = begin;
    for (; c + WIDE * LANES <= end; c += WIDE * LANES)
        if (s->y)
            column_sum(s, c, WIDE, LANES, true);
        else
            column_sum(s, c, WIDE, LANES, false);
    for (; c < end; c += LANES)
        if (s->y)
            column_sum(s, c, 1, min_i64(end - c, LANES), true);
        else
            column_sum(s, c, 1, min_i64(end - c, LANES), false);
}
