/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norm in training, forward and backward with the activation behind it, and LRN.
 *
 * Statistics: rows are split in a fixed way; each split leaves two sums per channel, of values
 * measured from the channel's first one (so that a large mean does not swamp the variance), and
 * finish adds the splits up in double, in order. */
#include "backend/cpu/kernel/act.h"

#define SPLITS 16
#define LEVEL  64 /* rows summed up by themselves: keeps the error of long sums small */

int64_t EW_K(batch_splits)(int64_t rows)
{
    return max_i64(min_i64(SPLITS, rows / LEVEL), 1);
}

/* [split][2][channels] */
size_t EW_K(batch_partial)(int64_t rows, int64_t channels)
{
    return (size_t)(EW_K(batch_splits)(rows) * 2 * channels);
}

/* What is summed up of a row, n channels from c on. */
INLINE void forward_terms(const struct ew_batch_norm *b, int64_t row, int64_t c, int64_t n,
                          vec out[2])
{
    const vec x = load_n(b->x + row * b->channels + c, n) - load_n(b->x + c, n);
    out[0] = x;
    out[1] = x * x;
}

/* Normalised input, and the gradient before the activation. */
INLINE void back_terms(const struct ew_batch_norm *b, int64_t row, int64_t c, int64_t n, vec out[2])
{
    const int64_t at = row * b->channels + c;
    const vec x = (load_n(b->x + at, n) - load_n(b->mean + c, n)) * load_n(b->rstd + c, n);
    vec dz = load_n(b->dy + at, n);
    if (b->act != EW_ACT_NONE) {
        vec z = x * load_n(b->scale + c, n) + load_n(b->bias + c, n);
        if (b->add)
            z += load_n(b->add + at, n);
        dz *= vact_slope(b->act, z, b->lo, b->hi);
    }
    out[0] = dz;
    out[1] = x;
}

/* Sums of rows [from, to), LEVEL rows by LANES channels at a time. */
INLINE void sum_rows(const struct ew_batch_norm *b, int64_t from, int64_t to, float *out,
                     const bool back)
{
    for (int64_t c = 0; c < b->channels; c += LANES) {
        const int64_t n = min_i64(LANES, b->channels - c);
        store_n(out + c, (vec){0}, n);
        store_n(out + b->channels + c, (vec){0}, n);
    }
    for (int64_t row = from; row < to; row += LEVEL) {
        const int64_t last = min_i64(row + LEVEL, to);
        for (int64_t c = 0; c < b->channels; c += LANES) {
            const int64_t n = min_i64(LANES, b->channels - c);
            vec s0 = {0}, s1 = {0};
            for (int64_t r = row; r < last; r++) {
                vec t[2];
                if (back) {
                    back_terms(b, r, c, n, t);
                    t[1] *= t[0];
                } else {
                    forward_terms(b, r, c, n, t);
                }
                s0 += t[0];
                s1 += t[1];
            }
            float *to0 = out + c, *to1 = out + b->channels + c;
            store_n(to0, load_n(to0, n) + s0, n);
            store_n(to1, load_n(to1, n) + s1, n);
        }
    }
}

void EW_K(batch_stats)(const struct ew_batch_norm *b, int64_t begin, int64_t end)
{
    const int64_t splits = EW_K(batch_splits)(b->rows);
    for (int64_t i = begin; i < end; i++)
        sum_rows(b, b->rows * i / splits, b->rows * (i + 1) / splits,
                 b->partial + i * 2 * b->channels, false);
}

/* Sum `which` of channel c over all splits. */
static double total(const struct ew_batch_norm *b, int which, int64_t c)
{
    double sum = 0;
    for (int64_t i = 0; i < EW_K(batch_splits)(b->rows); i++)
        sum += (double)b->partial[(i * 2 + which) * b->channels + c];
    return sum;
}

void EW_K(batch_finish)(const struct ew_batch_norm *b)
{
    const double n = (double)b->rows;
    for (int64_t c = 0; c < b->channels && b->rows > 0; c++) {
        const double shift = total(b, 0, c) / n;
        const double var = fmax(total(b, 1, c) / n - shift * shift, 0.0);
        const double mean = (double)b->x[c] + shift;
        b->mean[c] = (float)mean;
        b->rstd[c] = (float)(1.0 / sqrt(var + (double)b->eps));
        if (b->running_mean)
            b->running_mean[c] += b->momentum * ((float)mean - b->running_mean[c]);
        if (b->running_var) {
            const float unbiased = (float)(b->rows > 1 ? var * n / (n - 1) : var);
            b->running_var[c] += b->momentum * (unbiased - b->running_var[c]);
        }
    }
}

void EW_K(batch_apply)(const struct ew_batch_norm *b, int64_t begin, int64_t end)
{
    const struct ew_epilogue e = {.add = b->add, .act = b->act, .lo = b->lo, .hi = b->hi};
    for (int64_t row = begin; row < end; row++) {
        for (int64_t c = 0; c < b->channels; c += LANES) {
            const int64_t n = b->channels - c, at = row * b->channels + c;
            const vec x = (load_n(b->x + at, n) - load_n(b->mean + c, n)) * load_n(b->rstd + c, n);
            put(&e, b->y, at, x * load_n(b->scale + c, n) + load_n(b->bias + c, n), n);
        }
    }
}

void EW_K(batch_back_stats)(const struct ew_batch_norm *b, int64_t begin, int64_t end)
{
    const int64_t splits = EW_K(batch_splits)(b->rows);
    for (int64_t i = begin; i < end; i++)
        sum_rows(b, b->rows * i / splits, b->rows * (i + 1) / splits,
                 b->partial + i * 2 * b->channels, true);
}

void EW_K(batch_back_finish)(const struct ew_batch_norm *b)
{
    for (int64_t c = 0; c < b->channels; c++) {
        const double dbias = total(b, 0, c), dscale = total(b, 1, c);
        b->sums[c] = (float)(dbias / (double)b->rows);
        b->sums[b->channels + c] = (float)(dscale / (double)b->rows);
        if (b->dbias)
            b->dbias[c] = (float)dbias + (b->add_dparam ? b->dbias[c] : 0);
        if (b->dscale)
            b->dscale[c] = (float)dscale + (b->add_dparam ? b->dscale[c] : 0);
    }
}

/* dx = scale rstd (dz - mean(dz) - x mean(dz x)) */
void EW_K(batch_back_apply)(const struct ew_batch_norm *b, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++) {
        for (int64_t c = 0; c < b->channels; c += LANES) {
            const int64_t n = b->channels - c, at = row * b->channels + c;
            vec t[2];
            back_terms(b, row, c, n, t);
            const vec mean = load_n(b->sums + c, n), slope = load_n(b->sums + b->channels + c, n);
            const vec dx =
                load_n(b->scale + c, n) * load_n(b->rstd + c, n) * (t[0] - mean - t[1] * slope);
            if (b->dadd)
                store_n(b->dadd + at, t[0], n);
            store_n(b->dx + at, b->add_dx ? load_n(b->dx + at, n) + dx : dx, n);
        }
    }
}

/* ---- LRN ---- */

/* A row of squares with `size` zeros on either side. */
size_t EW_K(lrn_scratch)(const struct ew_lrn *l)
{
    return (size_t)(l->channels + 2 * l->size + LANES) * sizeof(float);
}

/* s^-beta; 0.75 is what all networks use. */
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
    const int64_t before = (l->size - 1) / 2; /* as ONNX has it: floor before, ceiling behind */
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
