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

/* The activation as a constant, so that loops do not choose: `what` is a statement with ACT. */
#define BY_ACT(what, b)                                                                            \
    switch ((b)->act) {                                                                            \
    case EW_ACT_NONE:                                                                              \
        what(EW_ACT_NONE);                                                                         \
        break;                                                                                     \
    case EW_ACT_RELU:                                                                              \
        what(EW_ACT_RELU);                                                                         \
        break;                                                                                     \
    case EW_ACT_CLIP:                                                                              \
        what(EW_ACT_CLIP);                                                                         \
        break;                                                                                     \
    case EW_ACT_HARD_SWISH:                                                                        \
        what(EW_ACT_HARD_SWISH);                                                                   \
        break;                                                                                     \
    default:                                                                                       \
        what((b)->act);                                                                            \
    }

/* Constants of n channels from c on: z = (x - mean) * gain + bias. */
struct gains {
    vec mean, gain, bias;
};

INLINE struct gains gains_at(const struct ew_batch_norm *b, int64_t c, int64_t n)
{
    return (struct gains){.mean = load_n(b->mean + c, n),
                          .gain = load_n(b->rstd + c, n) * load_n(b->scale + c, n),
                          .bias = load_n(b->bias + c, n)};
}

/* The input from its mean, and the gradient before the activation; `at` is an element's number. */
INLINE void back_terms(const struct ew_batch_norm *b, const struct gains *k, int64_t at, int64_t n,
                       vec out[2], const enum ew_act act)
{
    const vec x = load_n(b->x + at, n) - k->mean;
    vec dz = load_n(b->dy + at, n);
    if (act != EW_ACT_NONE) {
        vec z = x * k->gain + k->bias;
        if (b->add)
            z += load_n(b->add + at, n);
        dz *= vact_slope(act, z, b->lo, b->hi);
    }
    out[0] = dz;
    out[1] = x;
}

/* Vectors of channels that are summed up together: whole stretches of a row are read at a time. */
#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_neon)
#define GROUP 4
#else
#define GROUP 2
#endif

/* A block of rows and `count` vectors of channels from c on, of which the last has n lanes. */
struct sum_block {
    int64_t row, last, c, n;
    float *out; /* [2][channels] */
};

/* Sums of x and x^2 (from the channel's first x), or backward of dz and dz x. */
INLINE void sum_block(const struct ew_batch_norm *b, const struct sum_block *k, const int count,
                      const int64_t n, const bool back, const enum ew_act act)
{
    vec s0[GROUP] = {{0}}, s1[GROUP] = {{0}};
    struct gains g[GROUP];
    UNROLL
    for (int v = 0; v < count; v++) {
        const int64_t c = k->c + v * LANES;
        if (back)
            g[v] = gains_at(b, c, n);
        else
            g[v].mean = load_n(b->x + c, n);
    }
    for (int64_t row = k->row; row < k->last; row++) {
        const int64_t at = row * b->channels + k->c;
        UNROLL
        for (int v = 0; v < count; v++) {
            vec t[2];
            if (back) {
                back_terms(b, &g[v], at + v * LANES, n, t, act);
                t[1] *= t[0];
            } else {
                t[0] = load_n(b->x + at + v * LANES, n) - g[v].mean;
                t[1] = t[0] * t[0];
            }
            s0[v] += t[0];
            s1[v] += t[1];
        }
    }
    UNROLL
    for (int v = 0; v < count; v++) {
        const int64_t c = k->c + v * LANES;
        float *to0 = k->out + c, *to1 = k->out + b->channels + c;
        if (back)
            s1[v] *= load_n(b->rstd + c, n);
        store_n(to0, load_n(to0, n) + s0[v], n);
        store_n(to1, load_n(to1, n) + s1[v], n);
    }
}

/* Sums of rows [from, to), LEVEL rows at a time. */
INLINE void sum_rows(const struct ew_batch_norm *b, int64_t from, int64_t to, float *out,
                     const bool back, const enum ew_act act)
{
    for (int64_t c = 0; c < 2 * b->channels; c += LANES)
        store_n(out + c, (vec){0}, 2 * b->channels - c);
    for (int64_t row = from; row < to; row += LEVEL) {
        struct sum_block k = {.row = row, .last = min_i64(row + LEVEL, to), .out = out};
        for (; k.c + GROUP * LANES <= b->channels; k.c += GROUP * LANES)
            sum_block(b, &k, GROUP, LANES, back, act);
        for (; k.c + LANES <= b->channels; k.c += LANES)
            sum_block(b, &k, 1, LANES, back, act);
        if (k.c < b->channels)
            sum_block(b, &k, 1, b->channels - k.c, back, act);
    }
}

void EW_K(batch_stats)(const struct ew_batch_norm *b, int64_t begin, int64_t end)
{
    const int64_t splits = EW_K(batch_splits)(b->rows);
    for (int64_t i = begin; i < end; i++)
        sum_rows(b, b->rows * i / splits, b->rows * (i + 1) / splits,
                 b->partial + i * 2 * b->channels, false, EW_ACT_NONE);
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

INLINE void apply_vector(const struct ew_batch_norm *b, int64_t at, int64_t c, int64_t n,
                         const enum ew_act act)
{
    const struct gains k = gains_at(b, c, n);
    vec z = (load_n(b->x + at, n) - k.mean) * k.gain + k.bias;
    if (b->add)
        z += load_n(b->add + at, n);
    store_n(b->y + at, vact(act, z, b->lo, b->hi), n);
}

INLINE void apply_rows(const struct ew_batch_norm *b, int64_t begin, int64_t end,
                       const enum ew_act act)
{
    for (int64_t row = begin; row < end; row++) {
        const int64_t at = row * b->channels;
        int64_t c = 0;
        for (; c + LANES <= b->channels; c += LANES)
            apply_vector(b, at + c, c, LANES, act);
        if (c < b->channels)
            apply_vector(b, at + c, c, b->channels - c, act);
    }
}

void EW_K(batch_apply)(const struct ew_batch_norm *b, int64_t begin, int64_t end)
{
#define APPLY(act) apply_rows(b, begin, end, act)
    BY_ACT(APPLY, b)
#undef APPLY
}

void EW_K(batch_back_stats)(const struct ew_batch_norm *b, int64_t begin, int64_t end)
{
    const int64_t splits = EW_K(batch_splits)(b->rows);
    for (int64_t i = begin; i < end; i++) {
        const int64_t from = b->rows * i / splits, to = b->rows * (i + 1) / splits;
        float *out = b->partial + i * 2 * b->channels;
#define STATS(act) sum_rows(b, from, to, out, true, act)
        BY_ACT(STATS, b)
#undef STATS
    }
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

/* dx = scale rstd (dz - mean(dz) - x mean(dz x)); x is normalised */
INLINE void back_vector(const struct ew_batch_norm *b, int64_t at, int64_t c, int64_t n,
                        const enum ew_act act)
{
    const struct gains k = gains_at(b, c, n);
    vec t[2];
    back_terms(b, &k, at, n, t, act);
    const vec x = t[1] * load_n(b->rstd + c, n);
    const vec mean = load_n(b->sums + c, n), slope = load_n(b->sums + b->channels + c, n);
    const vec dx = k.gain * (t[0] - mean - x * slope);
    if (b->dadd)
        store_n(b->dadd + at, t[0], n);
    store_n(b->dx + at, b->add_dx ? load_n(b->dx + at, n) + dx : dx, n);
}

INLINE void back_rows(const struct ew_batch_norm *b, int64_t begin, int64_t end,
                      const enum ew_act act)
{
    for (int64_t row = begin; row < end; row++) {
        const int64_t at = row * b->channels;
        int64_t c = 0;
        for (; c + LANES <= b->channels; c += LANES)
            back_vector(b, at + c, c, LANES, act);
        if (c < b->channels)
            back_vector(b, at + c, c, b->channels - c, act);
    }
}

void EW_K(batch_back_apply)(const struct ew_batch_norm *b, int64_t begin, int64_t end){
#define BACK(act) back_rows(b, begin, end, act)
    BY_ACT(BACK, b)
#undef BACK
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
