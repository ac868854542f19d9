/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit element-wise kernels: sums and products, lookup tables, quantise and dequantise. */
#include "backend/cpu/kernel/int8/int8_gemm.h"

/* ---- Two inputs ---- */

struct pair {
    vec a_ratio, b_ratio;
    vint a_zero, b_zero;
    v16 y_zero;
    vbytes a_flip, b_flip, y_flip;
    float lo, hi;
    bool times;
};

static struct pair pair_of(const struct ew_qpair *p)
{
    return (struct pair){.a_ratio = splat(p->a_ratio),
                         .b_ratio = splat(p->b_ratio),
                         .a_zero = p->of_a.zero - (vint){0},
                         .b_zero = p->of_b.zero - (vint){0},
                         .y_zero = splat16(p->of_y.zero),
                         .a_flip = p->of_a.flip - (vbytes){0},
                         .b_flip = p->of_b.flip - (vbytes){0},
                         .y_flip = p->of_y.flip - (vbytes){0},
                         .lo = (float)(p->lo - p->of_y.zero),
                         .hi = (float)(p->hi - p->of_y.zero),
                         .times = p->times};
}

INLINE vint pair_int(const struct pair *p, vec a, vec b, bool times)
{
    if (times) /* a * b is below 2^17: exact */
        return round_int(clamp((a * b) * p->a_ratio, p->lo, p->hi));
    const vec x = a * p->a_ratio, y = b * p->b_ratio;
    return round_int(clamp(x + y, p->lo, p->hi));
}

INLINE void pair_wide(const struct pair *p, const uint8_t *a, const uint8_t *b, uint8_t *y,
                      int64_t n)
{
    const v16 x = widen(load_bytes(a, n) ^ p->a_flip), z = widen(load_bytes(b, n) ^ p->b_flip);
    const vec x0 = to_float(widen_a(x) - p->a_zero), x1 = to_float(widen_b(x) - p->a_zero);
    const vec z0 = to_float(widen_a(z) - p->b_zero), z1 = to_float(widen_b(z) - p->b_zero);
    const v16 q = narrow2(pair_int(p, x0, z0, p->times), pair_int(p, x1, z1, p->times));
    store_bytes(y, bytes_of(q + p->y_zero) ^ p->y_flip, n);
}

static void pair_row(const struct pair *p, const uint8_t *a, const uint8_t *b, uint8_t *y,
                     int64_t n)
{
    for (; n >= WIDE; n -= WIDE, a += WIDE, b += WIDE, y += WIDE)
        pair_wide(p, a, b, y, WIDE);
    if (n > 0)
        pair_wide(p, a, b, y, n);
}

void EW_K(int8_pair_run)(const struct ew_qpair *q, int64_t begin, int64_t end)
{
    const struct pair p = pair_of(q);
    if (!q->channels) {
        pair_row(&p, q->a + begin, q->b + begin, q->y + begin, end - begin);
        return;
    }
    for (int64_t row = begin; row < end; row++)
        pair_row(&p, q->a + row * q->channels, q->b + row / q->rows * q->channels,
                 q->y + row * q->channels, q->channels);
}

/* ---- Tables ---- */

void EW_K(int8_table_run)(const struct ew_qtable *t, int64_t begin, int64_t end)
{
#if defined(EW_ISA_IS_avx512vnni)
    for (int64_t i = begin; i < end; i += BIG) {
        const int64_t n = min_i64(BIG, end - i);
        store_big(t->y + i, (vbig)lookup64((__m512i)load_big(t->x + i, n), t->table), n);
    }
#elif defined(EW_ISA_IS_avx2)
    for (int64_t i = begin; i < end; i += WIDE) {
        const int64_t n = min_i64(WIDE, end - i);
        store_bytes(t->y + i, lookup(load_bytes(t->x + i, n), t->table), n);
    }
#else
    for (int64_t i = begin; i < end; i++)
        t->y[i] = t->table[t->x[i]];
#endif
}

/* ---- Floats ---- */

/* NaN becomes the zero point. */
INLINE vint quantize(vec x, vec scale, float lo, float hi)
{
    const vec t = x / scale;
    return round_int(clamp(pick(t == t, t, splat(0)), lo, hi));
}

void EW_K(quantize_run)(const struct ew_qfloat *f, int64_t begin, int64_t end)
{
    const vec scale = splat(f->scale);
    const float lo = (float)-f->of.zero, hi = (float)(255 - f->of.zero);
    const v16 zero = splat16(f->of.zero);
    const vbytes flip = f->of.flip - (vbytes){0};
    for (int64_t i = begin; i < end; i += LANES) {
        const int64_t n = min_i64(LANES, end - i);
        const vint q = quantize(load_n(f->real + i, n), scale, lo, hi);
        store_bytes(f->bytes + i, bytes_of(narrow1(q) + zero) ^ flip, n);
    }
}

void EW_K(dequantize_run)(const struct ew_qfloat *f, int64_t begin, int64_t end)
{
    const vec scale = splat(f->scale);
    const v16 zero = splat16(f->of.zero);
    const vbytes flip = f->of.flip - (vbytes){0};
    for (int64_t i = begin; i < end; i += LANES) {
        const int64_t n = min_i64(LANES, end - i);
        const vint q = widen_one(widen(load_bytes(f->bytes + i, n) ^ flip) - zero);
        store_n(f->real + i, to_float(q) * scale, n);
    }
}
