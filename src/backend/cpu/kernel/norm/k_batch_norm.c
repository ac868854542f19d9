/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norm in training with a fused activation, forward and backward; LRN.
 *
 * Statistics: rows are divided into a fixed number of splits.  Each split has two sums per channel,
 * of differences from the channel's first value in it (so that a large mean does not swamp the
 * variance); batch_finish adds the splits in double, in order. */
#include "backend/cpu/kernel/common/act.h"
#include "backend/cpu/kernel/common/formed.h"
#include "backend/cpu/kernel/norm/norm_rows.h"
#include "backend/cpu/kernel/norm/norm_stats.h"

#define SPLITS 64
#define SHARE  64 /* fewest rows of a split */

int64_t EW_K(batch_splits)(int64_t rows)
{
    return max_i64(min_i64(SPLITS, rows / SHARE), 1);
}

/* Floats of the statistics' splits; those of backward are smaller, [2][channels]. */
size_t EW_K(batch_partial)(int64_t rows, int64_t channels)
{
    return (size_t)(EW_K(batch_splits)(rows) * stats_size(channels));
}

/* Forward, rows of each split but the last. */
static int64_t split_rows(const struct ew_batch_norm *b)
{
    return b->split_rows ? b->split_rows : div_up(b->rows, EW_K(batch_splits)(b->rows));
}

/* Constants of n channels from c on: z = (x - mean) * gain + bias; backward, dx = gain dz + slope
 * (x - mean) + level. */
struct gains {
    vec mean, gain, bias, slope, level;
    vec factor, average_grad; /* squeeze-and-excite: dy factor + average_grad */
};

INLINE struct gains gains_at(const struct ew_batch_norm *b, int64_t c, int64_t n, const bool back)
{
    return (struct gains){.mean = load_n(b->mean + c, n),
                          .gain = load_n(b->rstd + c, n) * load_n(b->scale + c, n),
                          .bias = load_n(b->bias + c, n),
                          .slope = back ? load_n(b->sums + c, n) : (vec){0},
                          .level = back ? load_n(b->sums + b->channels + c, n) : (vec){0},
                          .factor = back && b->factor ? load_n(b->factor + c, n) : splat(1.0f),
                          .average_grad = back && b->factor
                                              ? load_n(b->average_grad + c, n) * b->average_scale
                                              : (vec){0}};
}

/* out[0] = dz, the gradient before the activation; out[1] = x - mean; of the elements from `at`
 * on. */
INLINE void back_terms(const struct ew_batch_norm *b, const struct gains *k, int64_t at, int64_t n,
                       vec out[2], const enum ew_act act)
{
    const vec x = load_n(b->x + at, n) - k->mean;
    vec dz = load_n(b->dy + at, n);
    if (b->factor)
        dz = dz * k->factor + k->average_grad;
    if (act != EW_ACT_NONE) {
        vec z = x * k->gain + k->bias;
        if (b->add)
            z += load_n(b->add + at, n);
        dz = vact_back(act, z, dz, b->lo, b->hi);
    }
    out[0] = dz;
    out[1] = x;
}

/* Block sizes: a channel's constants stay in registers for that many rows, and GROUP vectors of a
 * row are read at a time.  Each block has its own sums, which limits the rounding error of long
 * sums.  Output outside of the caches is best written row by row (APPLY_ROWS); output that stays in
 * a cache is not (NEAR_ROWS). */
#define SUM_ROWS   16
#define APPLY_ROWS 1
#define BACK_ROWS  4
#define NEAR_ROWS  8
#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_neon)
#define GROUP 4
#else
#define GROUP 2
#endif

/* Rows [row, last), vectors of channels from c on. */
struct block {
    int64_t row, last, c;
    int64_t ahead; /* see struct rows */
    float *to;     /* sums: [2][channels]; forward, a split's statistics */
};

/* Accumulates x and x^2, or backward dz and dz x. */
INLINE void sum_block(const struct ew_batch_norm *b, const struct block *k, const int count,
                      const int64_t n, const bool back, const enum ew_act act)
{
    vec s0[GROUP] = {{0}}, s1[GROUP] = {{0}};
    struct gains g[GROUP];
    UNROLL
    for (int v = 0; v < count; v++) {
        const int64_t c = k->c + v * LANES;
        g[v] = back ? gains_at(b, c, n, false) : (struct gains){.mean = load_n(k->to + c, n)};
    }
    const int64_t step = back ? b->channels : stats_wide(b->channels);
    for (int64_t row = k->row; row < k->last; row++) {
        const int64_t at = row * b->channels + k->c;
        UNROLL
        for (int v = 0; v < count; v++) {
            vec t[2];
            if (back)
                back_terms(b, &g[v], at + v * LANES, n, t, act);
            else
                t[0] = t[1] = load_n(b->x + at + v * LANES, n) - g[v].mean;
            s0[v] += t[0];
            s1[v] += t[0] * t[1];
        }
    }
    UNROLL
    for (int v = 0; v < count; v++) {
        float *to0 = k->to + k->c + v * LANES + (back ? 0 : step), *to1 = to0 + step;
        store_n(to0, load_n(to0, n) + s0[v], n);
        store_n(to1, load_n(to1, n) + s1[v], n);
    }
}

INLINE void apply_block(const struct ew_batch_norm *b, const struct block *k, const int count,
                        const int64_t n, const enum ew_act act)
{
    struct gains g[GROUP];
    UNROLL
    for (int v = 0; v < count; v++)
        g[v] = gains_at(b, k->c + v * LANES, n, false);
    for (int64_t row = k->row; row < k->last; row++) {
        UNROLL
        for (int v = 0; v < count; v++) {
            const int64_t at = row * b->channels + k->c + v * LANES;
            if (k->ahead)
                __builtin_prefetch(b->x + at + k->ahead, 0, 2);
            vec z = (load_n(b->x + at, n) - g[v].mean) * g[v].gain + g[v].bias;
            if (b->add)
                z += load_n(b->add + at, n);
            store_n(b->y + at, vact(act, z, b->lo, b->hi), n);
        }
    }
}

INLINE void back_block(const struct ew_batch_norm *b, const struct block *k, const int count,
                       const int64_t n, const enum ew_act act)
{
    struct gains g[GROUP];
    UNROLL
    for (int v = 0; v < count; v++)
        g[v] = gains_at(b, k->c + v * LANES, n, true);
    for (int64_t row = k->row; row < k->last; row++) {
        UNROLL
        for (int v = 0; v < count; v++) {
            const int64_t at = row * b->channels + k->c + v * LANES;
            vec t[2];
            if (k->ahead) {
                __builtin_prefetch(b->x + at + k->ahead, 0, 2);
                __builtin_prefetch(b->dy + at + k->ahead, 0, 2);
            }
            back_terms(b, &g[v], at, n, t, act);
            const vec dx = t[0] * g[v].gain + (t[1] * g[v].slope + g[v].level);
            if (b->dadd)
                store_n(b->dadd + at, t[0], n);
            store_n(b->dx + at, b->add_dx ? load_n(b->dx + at, n) + dx : dx, n);
        }
    }
}

enum pass { PASS_STATS, PASS_APPLY, PASS_BACK_STATS, PASS_BACK };

INLINE void one_block(const struct ew_batch_norm *b, const struct block *k, const int count,
                      const int64_t n, const enum pass pass, const enum ew_act act)
{
    if (pass == PASS_STATS || pass == PASS_BACK_STATS)
        sum_block(b, k, count, n, pass == PASS_BACK_STATS, act);
    else if (pass == PASS_APPLY)
        apply_block(b, k, count, n, act);
    else
        back_block(b, k, count, n, act);
}

/* Rows [from, to), `step` at a time.  Memory `ahead` floats further on is prefetched, because
 * hardware prefetchers do not follow columns of rows; 0: no prefetch. */
struct rows {
    int64_t from, to, step, ahead;
};

/* Runs a pass over all channels. */
FORMED void each_block(const struct ew_batch_norm *b, const struct rows r, float *sums,
                       const enum pass pass, const enum ew_act act)
{
    for (int64_t row = r.from; row < r.to; row += r.step) {
        struct block k = {
            .row = row, .last = min_i64(row + r.step, r.to), .to = sums, .ahead = r.ahead};
        for (; k.c + GROUP * LANES <= b->channels; k.c += GROUP * LANES)
            one_block(b, &k, GROUP, LANES, pass, act);
        for (; k.c + LANES <= b->channels; k.c += LANES)
            one_block(b, &k, 1, LANES, pass, act);
        if (k.c < b->channels)
            one_block(b, &k, 1, b->channels - k.c, pass, act);
    }
}

/* ---- Forward.  Loops use a copy of the arguments, which stores cannot alias.  ---- */

void EW_K(batch_stats)(const struct ew_batch_norm *norm, int64_t begin, int64_t end)
{
    const struct ew_batch_norm b = *norm;
    const int64_t size = split_rows(&b), wide = stats_wide(b.channels);
    for (int64_t i = begin; i < end && i * size < b.rows; i++) {
        float *to = b.partial + i * stats_size(b.channels);
        const struct rows r = {i * size, min_i64((i + 1) * size, b.rows), SUM_ROWS};
        copy(to, b.x + r.from * b.channels, b.channels);
        clear(to + wide, 2 * wide);
        each_block(&b, r, to, PASS_STATS, EW_ACT_NONE);
    }
}

/* Both sums of LANES channels from c on over all splits, as differences from the first split's
 * first values.  Lanes beyond the last channel are undefined. */
static void moments(const struct ew_batch_norm *b, int64_t c, double out[2][LANES])
{
    const int64_t size = split_rows(b), wide = stats_wide(b->channels);
    const float *first = b->partial + c;
    memset(out, 0, 2 * LANES * sizeof(double));
    for (int64_t row = 0; row < b->rows; row += size) {
        const float *from = first + row / size * stats_size(b->channels);
        const double rows = (double)min_i64(size, b->rows - row);
        for (int j = 0; j < LANES; j++) {
            const double apart = (double)from[j] - (double)first[j];
            const double sum = (double)from[wide + j], all = rows * apart;
            out[0][j] += sum + all;
            out[1][j] += (double)from[2 * wide + j] + apart * (2 * sum + all);
        }
    }
}

/* Both sums of backward, of up to LANES channels. */
static void totals(const struct ew_batch_norm *b, int64_t c, double out[2][LANES])
{
    const int64_t n = min_i64(LANES, b->channels - c);
    memset(out, 0, 2 * LANES * sizeof(double));
    const int64_t splits = b->splits ? b->splits : EW_K(batch_splits)(b->rows);
    for (int64_t i = 0; i < 2 * splits; i++) {
        const float *from = b->partial + i * b->channels + c;
        for (int64_t j = 0; j < n; j++)
            out[i % 2][j] += (double)from[j];
    }
}

static void finish_channel(const struct ew_batch_norm *b, int64_t c, double sum, double squares)
{
    const double n = (double)b->rows, shift = sum / n;
    const double var = fmax(squares / n - shift * shift, 0.0);
    const double mean = (double)b->partial[c] + shift;
    b->mean[c] = (float)mean;
    b->rstd[c] = (float)(1.0 / sqrt(var + (double)b->eps));
    if (b->running_mean)
        b->running_mean[c] += b->momentum * ((float)mean - b->running_mean[c]);
    if (b->running_var) {
        const float unbiased = (float)(b->rows > 1 ? var * n / (n - 1) : var);
        b->running_var[c] += b->momentum * (unbiased - b->running_var[c]);
    }
}

void EW_K(batch_finish)(const struct ew_batch_norm *b)
{
    double sum[2][LANES];
    for (int64_t c = 0; c < b->channels && b->rows > 0; c++) {
        if (c % LANES == 0)
            moments(b, c, sum);
        finish_channel(b, c, sum[0][c % LANES], sum[1][c % LANES]);
    }
}

static void apply(const struct ew_batch_norm *norm, const struct rows r)
{
    const struct ew_batch_norm b = *norm;
#define APPLY(act) each_block(&b, r, NULL, PASS_APPLY, act)
    BY_ACT(APPLY, &b)
#undef APPLY
}

void EW_K(batch_apply)(const struct ew_batch_norm *b, int64_t begin, int64_t end)
{
    apply(b, (struct rows){begin, end, APPLY_ROWS});
}

void EW_K(batch_apply_near)(const struct ew_batch_norm *b, int64_t rows, int64_t ahead)
{
    apply(b, (struct rows){0, rows, NEAR_ROWS, ahead});
}

/* ---- Backward ---- */

void EW_K(batch_back_rows)(const struct ew_batch_norm *norm, int64_t begin, int64_t end, float *to)
{
    const struct ew_batch_norm b = *norm;
    const struct rows r = {begin, end, SUM_ROWS};
#define STATS(act) each_block(&b, r, to, PASS_BACK_STATS, act)
    BY_ACT(STATS, &b)
#undef STATS
}

void EW_K(batch_back_stats)(const struct ew_batch_norm *b, int64_t begin, int64_t end)
{
    const int64_t splits = EW_K(batch_splits)(b->rows);
    for (int64_t i = begin; i < end; i++) {
        float *out = b->partial + i * 2 * b->channels;
        clear(out, 2 * b->channels);
        EW_K(batch_back_rows)(b, b->rows * i / splits, b->rows * (i + 1) / splits, out);
    }
}

void EW_K(batch_back_total)(const struct ew_batch_norm *b, float *to)
{
    double sum[2][LANES];
    for (int64_t c = 0; c < b->channels; c++) {
        if (c % LANES == 0)
            totals(b, c, sum);
        to[c] = (float)sum[0][c % LANES];
        to[b->channels + c] = (float)sum[1][c % LANES];
    }
}

/* dx = scale rstd (dz - mean(dz) - xhat mean(dz xhat)): computes slope and level, the constants of
 * each channel. */
static void back_finish_channel(const struct ew_batch_norm *b, int64_t c, double dbias,
                                double product)
{
    const double rstd = (double)b->rstd[c], gain = (double)b->scale[c] * rstd;
    const double dscale = product * rstd, rows = (double)b->rows;
    b->sums[c] = (float)(-gain * rstd * dscale / rows);
    b->sums[b->channels + c] = (float)(-gain * dbias / rows);
    if (b->dbias)
        b->dbias[c] = (float)dbias + (b->add_dparam ? b->dbias[c] : 0);
    if (b->dscale)
        b->dscale[c] = (float)dscale + (b->add_dparam ? b->dscale[c] : 0);
}

void EW_K(batch_back_finish)(const struct ew_batch_norm *b)
{
    double sum[2][LANES];
    for (int64_t c = 0; c < b->channels; c++) {
        if (c % LANES == 0)
            totals(b, c, sum);
        back_finish_channel(b, c, sum[0][c % LANES], sum[1][c % LANES]);
    }
}

static void back_apply(const struct ew_batch_norm *norm, const struct rows r)
{
    const struct ew_batch_norm b = *norm;
#define BACK(act) each_block(&b, r, NULL, PASS_BACK, act)
    BY_ACT(BACK, &b)
#undef BACK
}

void EW_K(batch_back_apply)(const struct ew_batch_norm *b, int64_t begin, int64_t end)
{
    back_apply(b, (struct rows){begin, end, BACK_ROWS});
}

void EW_K(batch_back_near)(const struct ew_batch_norm *b, int64_t rows, int64_t ahead)
{
    back_apply(b, (struct rows){0, rows, NEAR_ROWS, ahead});
}

/* ---- LRN ---- */

/* Scratch: a row of squares with `size` zeros on both sides. */
size_t EW_K(lrn_scratch)(const struct ew_lrn *l)
{
    return (size_t)(l->channels + 2 * l->size + LANES) * sizeof(float);
}

/* s^-beta; all networks use 0.75. */
INLINE vec lrn_power(vec s, float beta)
{
    if (fabsf(beta - 0.75f) < 1e-7f)
        return 1.0f / vsqrt(s * vsqrt(s));
    for (int i = 0; i < LANES; i++)
        s[i] = powf(s[i], -beta);
    return s;
}

void EW_K(lrn_run)(const struct ew_lrn *l, int64_t begin, int64_t end, void *scratch)
{
    float *const square = (float *)scratch + l->size;
    const float gain = l->alpha / (float)l->size;
    const int64_t before = (l->size - 1) / 2; /* as in ONNX: floor before, ceiling after */
    clear(scratch, l->channels + 2 * l->size + LANES);
    for (int64_t row = begin; row < end; row++) {
        const float *x = l->x + row * l->channels;
        for (int64_t c = 0; c < l->channels; c += LANES) {
            const vec v = load_n(x + c, l->channels - c);
            store_n(square + c, v * v, l->channels - c);
        }
        for (int64_t c = 0; c < l->channels; c += LANES) {
            vec sum = {0};
            for (int64_t i = 0; i < l->size; i++)
                sum += load(square + c - before + i);
            const int64_t n = l->channels - c;
            const vec v = load_n(x + c, n) * lrn_power(l->k + gain * sum, l->beta);
            store_n(l->y + row * l->channels + c, v, n);
        }
    }
}
