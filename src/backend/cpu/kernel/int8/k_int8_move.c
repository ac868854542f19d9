/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit data movement: copies of rows, channel shuffles, transposes. */
#include "backend/cpu/kernel/int8/int8_bytes.h"

/* Inline: most rows are a few vectors, too short for a call of memcpy. */
INLINE void copy_bytes(uint8_t *restrict to, const uint8_t *restrict from, int64_t n)
{
    for (; n > BIG; n -= BIG, from += BIG, to += BIG)
        store_big(to, load_big(from, BIG), BIG);
    if (n > 0)
        store_big(to, load_big(from, n), n);
}

void EW_K(int8_copy_rows)(const struct ew_qrows *r, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++)
        copy_bytes(r->out + row * r->out_step, r->in + row * r->in_step, r->n);
}

/* [groups, each] to [each, groups].  Groups are usually few, so that each is one input stream. */
INLINE void shuffle_row(uint8_t *restrict to, const uint8_t *restrict from, const int64_t groups,
                        int64_t each)
{
    for (int64_t i = 0; i < each; i++)
        for (int64_t g = 0; g < groups; g++)
            to[i * groups + g] = from[g * each + i];
}

static void shuffle_row_any(uint8_t *to, const uint8_t *from, int64_t groups, int64_t each)
{
    switch (groups) {
    case 2:
        shuffle_row(to, from, 2, each);
        break;
    case 3:
        shuffle_row(to, from, 3, each);
        break;
    case 4:
        shuffle_row(to, from, 4, each);
        break;
    default:
        shuffle_row(to, from, groups, each);
    }
}

void EW_K(int8_shuffle_run)(const struct ew_qshuffle *s, int64_t begin, int64_t end)
{
    const int64_t n = s->groups * s->each;
    for (int64_t row = begin; row < end; row++)
        shuffle_row_any(s->out + row * n, s->in + row * n, s->groups, s->each);
}

#define EDGE 64 /* side of the tile that is transposed at a time */

int64_t EW_K(int8_transpose_tiles)(const struct ew_qtranspose *t)
{
    return t->rows <= 4 ? t->batch : t->batch * div_up(t->columns, EDGE);
}

static void transpose(const struct ew_qtranspose *t, int64_t matrix, int64_t column)
{
    const uint8_t *in = t->in + matrix * t->rows * t->columns;
    uint8_t *out = t->out + matrix * t->rows * t->columns;
    const int64_t last = min_i64(column + EDGE, t->columns);
    for (int64_t r0 = 0; r0 < t->rows; r0 += EDGE)
        for (int64_t c = column; c < last; c++)
            for (int64_t r = r0; r < min_i64(r0 + EDGE, t->rows); r++)
                out[c * t->rows + r] = in[r * t->columns + c];
}

void EW_K(int8_transpose_run)(const struct ew_qtranspose *t, int64_t begin, int64_t end)
{
    const int64_t count = t->rows * t->columns, tiles = div_up(t->columns, EDGE);
    for (int64_t tile = begin; tile < end; tile++) {
        if (t->rows <= 4) /* the channels of an image */
            shuffle_row_any(t->out + tile * count, t->in + tile * count, t->rows, t->columns);
        else
            transpose(t, tile / tiles, tile % tiles * EDGE);
    }
}
