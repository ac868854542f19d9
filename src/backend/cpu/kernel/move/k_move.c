/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that move rows of channels: strided copies (concat, split) and channel shuffles; with
 * `add` they accumulate. */
#include "backend/cpu/kernel/common/vec.h"

static void add_to(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES)
        store_n(to + i, load_n(to + i, n - i) + load_n(from + i, n - i), n - i);
}

void EW_K(copy_rows)(const struct ew_copy_rows *c, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++) {
        float *to = c->out + row * c->out_step;
        const float *from = c->in + row * c->in_step;
        if (c->add)
            add_to(to, from, c->n);
        else
            copy(to, from, c->n);
    }
}

/* ---- Shuffles ---- */

/* A permutation of the lanes of two vectors; MIX(a, b, 0, LANES, 1, LANES + 1, ...)  interleaves
 * them. */
#if defined(__clang__)
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MIX(a, b, ...) __builtin_shuffle(a, b, (vint){__VA_ARGS__})
#endif
#if LANES == 16
#define LOW  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD  1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#elif LANES == 8
#define LOW  0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD  1, 3, 5, 7, 9, 11, 13, 15
#else
#define LOW  0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#define EVEN 0, 2, 4, 6
#define ODD  1, 3, 5, 7
#endif

INLINE void put_sum(float *to, vec v, bool add)
{
    store(to, add ? load(to) + v : v);
}

/* LANES pairs of one row: interleaves two halves; pairs_split is the inverse. */
INLINE void pairs_join(const float *a, const float *b, float *out, bool add)
{
    const vec x = load(a), y = load(b);
    put_sum(out, MIX(x, y, LOW), add);
    put_sum(out + LANES, MIX(x, y, HIGH), add);
}

INLINE void pairs_split(const float *in, float *a, float *b, bool add)
{
    const vec x = load(in), y = load(in + LANES);
    put_sum(a, MIX(x, y, EVEN), add);
    put_sum(b, MIX(x, y, ODD), add);
}

INLINE void move_one(const struct ew_shuffle *s, const float *in, float *out, int64_t i, int64_t j)
{
    float *to = out + j * s->groups + i;
    *to = s->add ? *to + in[i * s->each + j] : in[i * s->each + j];
}

/* Shuffles with two groups, or two channels a group: pairs of elements. */
static void shuffle_pairs(const struct ew_shuffle *s, const float *in, float *out)
{
    const bool join = s->groups == 2;
    const int64_t n = join ? s->each : s->groups;
    int64_t at = 0;
    for (; at + LANES <= n; at += LANES) {
        if (join)
            pairs_join(in + at, in + n + at, out + 2 * at, s->add);
        else
            pairs_split(in + 2 * at, out + at, out + n + at, s->add);
    }
    for (; at < n; at++) {
        move_one(s, in, out, join ? 0 : at, join ? at : 0);
        move_one(s, in, out, join ? 1 : at, join ? at : 1);
    }
}

void EW_K(shuffle_run)(const struct ew_shuffle *s, int64_t begin, int64_t end)
{
    const int64_t channels = s->groups * s->each;
    for (int64_t row = begin; row < end; row++) {
        const float *in = s->in + row * channels;
        float *out = s->out + row * channels;
        if (s->groups == 2 || s->each == 2) {
            shuffle_pairs(s, in, out);
            continue;
        }
        for (int64_t i = 0; i < s->groups; i++)
            for (int64_t j = 0; j < s->each; j++)
                move_one(s, in, out, i, j);
    }
}
