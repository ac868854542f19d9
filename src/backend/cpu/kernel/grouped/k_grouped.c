/* SPDX-License-Identifier: Apache-2.0 */
/* Grouped convolution with few channels a group (ResNeXt), forward: the accumulators of `px`
 * outputs of a row and one block of channels stay in registers over all taps.  3 taps with strides
 * 1 and 2 are unrolled, so that an input, once permuted or broadcast, serves all taps that use
 * it. */
#include "backend/cpu/kernel/common/act.h"
#include "backend/cpu/kernel/grouped/grouped.h"

/* ---- Geometry ---- */

static int64_t columns_for(const struct grouped *g, int64_t pixels)
{
    const struct ew_conv_axis *a = &g->s->axis[2];
    const int64_t made = div_up(pixels, g->px) * g->px;
    return (made - 1) * a->stride + (int64_t)(a->taps - 1) * a->dilation + 1;
}

static int64_t lines_for(const struct grouped *g, int64_t rows)
{
    const struct ew_conv_axis *a = &g->s->axis[1];
    return (rows - 1) * a->stride + (int64_t)(a->taps - 1) * a->dilation + 1;
}

/* Tiles as large as the line buffer allows: several rows of outputs share input lines. */
static void plan_tiles(struct grouped *g)
{
    const struct ew_conv_axis *a = g->s->axis;
    const int64_t column = g->chunks * a[0].taps * LANES; /* floats of a column, in one line */
    g->pixels = max_i64(a[2].out, 1);
    while (g->pixels > g->px &&
           columns_for(g, g->pixels) * column * lines_for(g, 1) > LINE_BUFFER_MAX)
        g->pixels = div_up(div_up(g->pixels, 2), g->px) * g->px;
    g->columns = columns_for(g, g->pixels);
    const int64_t lines = LINE_BUFFER_MAX / (g->columns * column);
    const int64_t rows = (lines - lines_for(g, 1)) / a[1].stride + 1;
    const int64_t most = max_i64(min_i64(rows, a[1].out), 1);
    g->row_tiles = div_up(a[1].out, most);
    g->rows = g->row_tiles ? div_up(a[1].out, g->row_tiles) : 1;
    g->pixel_tiles = div_up(a[2].out, g->pixels);
    g->lines = lines_for(g, g->rows);
    g->line = g->columns * LANES;
    g->plane = g->lines * g->line;
    g->chunk = a[0].taps * g->plane;
    g->tiles = g->s->batch * a[0].out * g->row_tiles * g->pixel_tiles * g->blocks;
}

void EW_K(grouped_init)(struct grouped *g, const struct ew_conv_shape *s)
{
    *g = (struct grouped){.s = s, .cg = s->cin / s->groups, .og = s->cout / s->groups};
    const int64_t span = min_i64(LANES / g->og, LANES / g->cg);
    g->span = max_i64(min_i64(span, s->groups), 1);
    g->vectors = g->span == 1 && g->og > LANES ? VECTORS : 1;
    g->parts = div_up(g->og, g->vectors * LANES);
    g->blocks = g->span > 1 ? div_up(s->groups, g->span) : s->groups * g->parts;
    g->chunks = div_up(g->cg * g->span, LANES);
    const int64_t out = s->axis[2].out; /* 7 or 8, whichever wastes fewer */
    g->px = div_up(out, 7) * 7 < div_up(out, 8) * 8 ? 7 : 8;
    plan_tiles(g);
}

void EW_K(grouped_tile)(const struct grouped *g, int64_t index, struct tile *t)
{
    const struct ew_conv_axis *a = g->s->axis;
    t->block = grouped_block(g, index % g->blocks);
    index /= g->blocks;
    t->at[2] = index % g->pixel_tiles * g->pixels;
    index /= g->pixel_tiles;
    t->at[1] = index % g->row_tiles * g->rows;
    index /= g->row_tiles;
    t->at[0] = index % a[0].out;
    t->image = index / a[0].out;
    t->rows = min_i64(g->rows, a[1].out - t->at[1]);
    t->pixels = min_i64(g->pixels, a[2].out - t->at[2]);
}

/* Copies one line of one chunk: columns from input `first` on, which may be outside. */
static void line_floats(const struct grouped *g, const float *x, int64_t first, int64_t left,
                        float *to)
{
    const int64_t in = g->s->axis[2].in, step = g->s->cin;
    const int64_t before = min_i64(max_i64(-first, 0), g->columns);
    const int64_t inside = max_i64(min_i64(in - first, g->columns), before);
    clear(to, before * LANES);
    for (int64_t c = before; c < inside; c++)
        store(to + c * LANES, load_n(x + (first + c) * step, left));
    clear(to + inside * LANES, (g->columns - inside) * LANES);
}

void EW_K(grouped_fill_lines)(const struct grouped *g, const struct tile *t, const float *x,
                              float *line_buffer)
{
    const struct ew_conv_shape *s = g->s;
    const struct ew_conv_axis *a = s->axis;
    const int64_t lines = lines_for(g, t->rows);
    for (int64_t i = 0; i < g->chunks * a[0].taps; i++) {
        const int64_t c = t->block.in + i / a[0].taps * LANES, p = i % a[0].taps;
        const int64_t z = t->at[0] * a[0].stride - a[0].pad + p * a[0].dilation;
        float *to = line_buffer + i / a[0].taps * g->chunk + p * g->plane;
        for (int64_t l = 0; l < lines; l++, to += g->line) {
            const int64_t y = t->at[1] * a[1].stride - a[1].pad + l;
            const float *line = x + ((t->image * a[0].in + z) * a[1].in + y) * a[2].in * s->cin + c;
            if (z < 0 || z >= a[0].in || y < 0 || y >= a[1].in)
                clear(to, g->line);
            else
                line_floats(g, line, t->at[2] * a[2].stride - a[2].pad, s->cin - c, to);
        }
    }
}

/* ---- Weights ---- */

/* Depthwise has its own kernels; beyond 32 channels a group implicit GEMM is as fast. */
bool EW_K(grouped_fits)(const struct ew_conv_shape *s)
{
    return s->groups > 1 && s->cin / s->groups <= GROUP_MAX &&
           (s->cin != s->groups || s->cout != s->groups);
}

size_t EW_K(grouped_pack_size)(const struct ew_conv_shape *s)
{
    struct grouped g;
    EW_K(grouped_init)(&g, s);
    return (size_t)(g.blocks * grouped_weights(&g));
}

/* Offset of the weight of one output, tap and input.  Rotated: outputs and inputs of a group are
 * swapped, and taps are reversed. */
INLINE int64_t weight_at(const struct grouped *g, int64_t out, int64_t tap, int64_t in, bool rotate)
{
    const struct ew_conv_axis *a = g->s->axis;
    const int64_t taps = (int64_t)a[0].taps * a[1].taps * a[2].taps;
    if (!rotate)
        return (out * taps + tap) * g->cg + in;
    return ((out / g->og * g->cg + in) * taps + taps - 1 - tap) * g->og + out % g->og;
}

/* Lanes beyond the last output are zero. */
void EW_K(grouped_pack_any)(const struct ew_conv_shape *s, const float *w, bool rotate,
                            float *packed)
{
    struct grouped g;
    EW_K(grouped_init)(&g, s);
    const int64_t taps = s->axis[2].taps, wide = g.vectors * LANES;
    const int64_t lines = (int64_t)s->axis[0].taps * s->axis[1].taps;
    for (int64_t b = 0; b < g.blocks; b++) {
        const struct block k = grouped_block(&g, b);
        for (int64_t i = 0; i < lines * g.cg * taps; i++, packed += wide) {
            const int64_t tap = i / taps / g.cg * taps + i % taps, c = i / taps % g.cg;
            for (int64_t l = 0; l < wide; l++)
                packed[l] = l < k.n_out ? w[weight_at(&g, k.out + l, tap, c, rotate)] : 0;
        }
    }
}

void EW_K(grouped_pack)(const struct ew_conv_shape *s, const float *w, float *packed)
{
    EW_K(grouped_pack_any)(s, w, false, packed);
}

int64_t EW_K(grouped_tiles)(const struct ew_conv_shape *s)
{
    struct grouped g;
    EW_K(grouped_init)(&g, s);
    return g.tiles;
}

size_t EW_K(grouped_scratch)(const struct ew_conv_shape *s)
{
    struct grouped g;
    EW_K(grouped_init)(&g, s);
    return grouped_line_buffer_bytes(&g);
}

/* ---- The run ---- */

/* Up to px outputs of one row. */
struct strip {
    const struct grouped *g;
    const struct ew_conv *conv;
    const float *line_buffer; /* at the first output's first tap */
    const float *w;           /* of the block */
    struct block block;
    vint first;        /* grouped_index */
    int64_t y, pixels; /* offset of the first output; number of outputs */
    bool plain;        /* whole strips and vectors, and the epilogue is a clamp alone */
    float lo, hi;
};

/* Constants of an instance, so that loops are unrolled. */
struct form {
    int px, vectors;
    int mix;    /* 0: inputs are broadcast; 1: permuted; 2: permuted within 128-bit parts (groups of
                 * 4) */
    int stride; /* for 3 taps without dilation; 0: general */
    int rows;   /* rows of outputs; 2: only for 3x3 filters */
};

/* The i-th input of each lane's group, for one pixel. */
INLINE vec input(const struct form form, const float *from, vint index, const int i)
{
#if defined(EW_ISA_IS_avx2) /* one instruction of one cycle instead of two of six */
    if (form.mix == 2)
        return i == 0   ? (vec)_mm256_permute_ps((__m256)load(from), 0x00)
               : i == 1 ? (vec)_mm256_permute_ps((__m256)load(from), 0x55)
               : i == 2 ? (vec)_mm256_permute_ps((__m256)load(from), 0xaa)
                        : (vec)_mm256_permute_ps((__m256)load(from), 0xff);
#endif
    if (form.mix)
        return permute(load(from), index);
    return splat(*from);
}

/* 3 taps of one line: output p reads input q through tap q - p * stride. */
INLINE void three_taps(const struct form form, vec sum[PX_MAX][VECTORS], const float *from,
                       const float *w, vint index, const int i)
{
    vec k[3][VECTORS];
    UNROLL
    for (int u = 0; u < 3; u++)
        UNROLL
    for (int v = 0; v < form.vectors; v++)
        k[u][v] = load(w + (u * form.vectors + v) * LANES);
    UNROLL
    for (int q = 0; q < (form.px - 1) * form.stride + 3; q++) {
        const vec x = input(form, from + q * LANES, index, i);
        UNROLL
        for (int u = 0; u < 3; u++) {
            if (q < u || (q - u) % form.stride != 0 || (q - u) / form.stride >= form.px)
                continue;
            UNROLL
            for (int v = 0; v < form.vectors; v++)
                sum[(q - u) / form.stride][v] += x * k[u][v];
        }
    }
}

#if ROW_PAIRS
/* The taps of two rows of outputs that read one input line; lines[r] are the weights for row r,
 * NULL: none. */
INLINE void pair_taps(const struct form form, vec sum[2][PX_MAX][VECTORS], const float *from,
                      const float *const lines[2], vint index)
{
    vec k[2][3];
    UNROLL
    for (int q = 0; q < 2; q++)
        UNROLL
    for (int u = 0; u < 3; u++)
        k[q][u] = lines[q] ? load(lines[q] + u * LANES) : (vec){0};
    UNROLL
    for (int i = 0; i < (form.px - 1) * form.stride + 3; i++) {
        const vec x = input(form, from + i * LANES, index, 0);
        UNROLL
        for (int q = 0; q < 2; q++)
            UNROLL
        for (int u = 0; u < 3; u++)
            if (lines[q] && i >= u && (i - u) % form.stride == 0 && (i - u) / form.stride < form.px)
                sum[q][(i - u) / form.stride][0] += x * k[q][u];
    }
}
#endif

/* All taps of one line, one by one. */
INLINE void any_taps(const struct form form, vec sum[PX_MAX][VECTORS], const struct ew_conv_axis *a,
                     const float *from, const float *w, vint index)
{
    const int64_t step = (int64_t)a->stride * LANES;
    for (int64_t u = 0; u < a->taps; u++) {
        const float *at = from + u * a->dilation * LANES;
        vec k[VECTORS];
        UNROLL
        for (int v = 0; v < form.vectors; v++)
            k[v] = load(w + (u * form.vectors + v) * LANES);
        UNROLL
        for (int p = 0; p < form.px; p++) {
            const vec x = input(form, at + p * step, index, 0);
            UNROLL
            for (int v = 0; v < form.vectors; v++)
                sum[p][v] += x * k[v];
        }
    }
}

/* Applies the epilogue and stores the valid pixels. */
static void finish(const struct strip *s, const float *sum, int64_t vectors)
{
    const struct ew_epilogue *e = &s->conv->end;
    for (int64_t p = 0; p < s->pixels; p++) {
        for (int64_t v = 0; v < vectors; v++, sum += LANES) {
            const int64_t n = s->block.n_out - v * LANES, c = s->block.out + v * LANES;
            if (n > 0)
                put(e, s->conv->y, s->y + p * s->conv->shape.cout + c, load(sum) + bias_at(e, c, n),
                    n);
        }
    }
}

/* The same for a plain strip, from registers. */
INLINE void finish_plain(const struct form form, const struct strip *s, vec sum[PX_MAX][VECTORS])
{
    const struct ew_conv *c = s->conv;
    const vec lo = splat(s->lo), hi = splat(s->hi);
    const int64_t step = c->shape.cout;
    float *y = c->y + s->y + s->block.out;
    vec bias[VECTORS];
    UNROLL
    for (int v = 0; v < form.vectors; v++)
        bias[v] = c->end.bias ? load(c->end.bias + s->block.out + v * LANES) : (vec){0};
    UNROLL
    for (int p = 0; p < form.px; p++, y += step)
        UNROLL
    for (int v = 0; v < form.vectors; v++)
        store(y + v * LANES, vmin(vmax(sum[p][v] + bias[v], lo), hi));
}

/* Stores the sums of one row. */
INLINE void finish_row(const struct form form, const struct strip *s, vec sum[PX_MAX][VECTORS])
{
    if (s->plain && s->pixels == form.px) {
        finish_plain(form, s, sum);
        return;
    }
    float out[PX_MAX * VECTORS * LANES];
    UNROLL
    for (int p = 0; p < form.px; p++)
        UNROLL
    for (int v = 0; v < form.vectors; v++)
        store(out + (p * form.vectors + v) * LANES, sum[p][v]);
    finish(s, out, form.vectors);
}

#if ROW_PAIRS
/* Two rows of outputs: an input, once permuted or broadcast, serves both, and twice the
 * accumulators hide the latency of FMAs. */
INLINE void pair_run(const struct form form, const struct strip *s)
{
    const struct grouped *g = s->g;
    const int64_t step = 3 * LANES, plane = g->cg * step;
    vec sum[2][PX_MAX][VECTORS];
    UNROLL
    for (int q = 0; q < 2; q++)
        UNROLL
    for (int p = 0; p < form.px; p++)
        sum[q][p][0] = (vec){0};
    UNROLL
    for (int l = 0; l < form.stride + 3; l++) {
        const float *line = s->line_buffer + l * g->line;
        vint index = s->first;
        for (int64_t i = 0; i < g->cg; i++) {
            const float *from = form.mix ? line : line + i / LANES * g->chunk + i % LANES;
            const float *w = s->w + i * step;
            const float *const lines[2] = {l < 3 ? w + l * plane : NULL,
                                           l >= form.stride ? w + (l - form.stride) * plane : NULL};
            pair_taps(form, sum, from, lines, index);
            index += 1;
        }
    }
    struct strip second = *s;
    second.y += g->s->axis[2].out * g->s->cout;
    finish_row(form, s, sum[0]);
    finish_row(form, &second, sum[1]);
}
#endif

/* The taps of one line, for groups of 4 channels. */
INLINE void four_inputs(const struct form form, vec sum[PX_MAX][VECTORS], const float *from,
                        const float *w, int64_t step)
{
    UNROLL
    for (int i = 0; i < 4; i++)
        three_taps(form, sum, from, w + i * step, (vint){0}, i);
}

INLINE void strip_run(const struct form form, const struct strip *s)
{
    const struct grouped *g = s->g;
    const struct ew_conv_axis *a = g->s->axis;
    const int64_t step = (int64_t)a[2].taps * form.vectors * LANES;
    const float *w = s->w;
    vec sum[PX_MAX][VECTORS];
    UNROLL
    for (int p = 0; p < form.px; p++)
        UNROLL
    for (int v = 0; v < form.vectors; v++)
        sum[p][v] = (vec){0};
    for (int64_t t = 0; t < a[0].taps * a[1].taps; t++) {
        const float *line =
            s->line_buffer + t / a[1].taps * g->plane + t % a[1].taps * a[1].dilation * g->line;
        vint index = s->first;
        if (form.mix == 2) {
            four_inputs(form, sum, line, w, step);
            w += 4 * step;
            continue;
        }
        for (int64_t i = 0; i < g->cg; i++, w += step) {
            const float *from = form.mix ? line : line + i / LANES * g->chunk + i % LANES;
            if (form.stride)
                three_taps(form, sum, from, w, index, 0);
            else
                any_taps(form, sum, &a[2], from, w, index);
            index += 1;
        }
    }
    finish_row(form, s, sum);
}

typedef void strip_fn(const struct strip *s);

#define STRIP(px, vectors, mix, stride)                                                            \
    static void strip_##px##_##vectors##_##mix##_##stride(const struct strip *s)                   \
    {                                                                                              \
        strip_run((struct form){px, vectors, mix, stride, 1}, s);                                  \
    }

#define STRIPS(px, vectors, mix)                                                                   \
    STRIP(px, vectors, mix, 0)                                                                     \
    STRIP(px, vectors, mix, 1)                                                                     \
    STRIP(px, vectors, mix, 2)                                                                     \
    static strip_fn *const strips_##px##_##vectors##_##mix[] = {                                   \
        strip_##px##_##vectors##_##mix##_0, strip_##px##_##vectors##_##mix##_1,                    \
        strip_##px##_##vectors##_##mix##_2};

STRIPS(7, 1, 1)
STRIPS(8, 1, 1)
STRIPS(7, 1, 0)
STRIPS(8, 1, 0)
#if defined(EW_ISA_IS_avx2)
STRIP(7, 1, 2, 1)
STRIP(8, 1, 2, 1)
#endif
#if VECTORS > 1
STRIPS(7, 2, 0)
STRIPS(8, 2, 0)
#endif

#if ROW_PAIRS
#define PAIR(px, mix, stride)                                                                      \
    static void pair_##px##_##mix##_##stride(const struct strip *s)                                \
    {                                                                                              \
        pair_run((struct form){px, 1, mix, stride, 2}, s);                                         \
    }

PAIR(7, 1, 1)
PAIR(8, 1, 1)
PAIR(7, 1, 2)
PAIR(8, 1, 2)
PAIR(7, 0, 1)
PAIR(8, 0, 1)
PAIR(7, 0, 2)
PAIR(8, 0, 2)

/* [inputs are permuted][8 pixels][stride 2] */
static strip_fn *const pairs[2][2][2] = {{{pair_7_0_1, pair_7_0_2}, {pair_8_0_1, pair_8_0_2}},
                                         {{pair_7_1_1, pair_7_1_2}, {pair_8_1_1, pair_8_1_2}}};
#endif

/* The instance for two rows; NULL: none. */
static strip_fn *pair_for(const struct grouped *g)
{
#if ROW_PAIRS
    const struct ew_conv_axis *y = &g->s->axis[1], *x = &g->s->axis[2];
    if (g->vectors == 1 && g->s->axis[0].taps == 1 && y->taps == 3 && x->taps == 3 &&
        y->dilation == 1 && x->dilation == 1 && x->stride <= 2 && y->stride == x->stride)
        return pairs[g->span > 1][g->px == 8][x->stride == 2];
#endif
    return NULL;
}

static strip_fn *strip_for(const struct grouped *g)
{
    const struct ew_conv_axis *a = &g->s->axis[2];
    const int stride = a->taps == 3 && a->dilation == 1 && a->stride <= 2 ? a->stride : 0;
#if VECTORS > 1
    if (g->vectors > 1)
        return (g->px == 7 ? strips_7_2_0 : strips_8_2_0)[stride];
#endif
#if defined(EW_ISA_IS_avx2)
    if (g->cg == 4 && g->og == 4 && g->span > 1 && stride == 1)
        return g->px == 7 ? strip_7_1_2_1 : strip_8_1_2_1;
#endif
    if (g->span > 1)
        return (g->px == 7 ? strips_7_1_1 : strips_8_1_1)[stride];
    return (g->px == 7 ? strips_7_1_0 : strips_8_1_0)[stride];
}

/* Sets `plain` if the epilogue of the block is a clamp alone. */
static void find_clamp(struct strip *s)
{
    const struct ew_epilogue *e = &s->conv->end;
    const bool clip = e->act == EW_ACT_CLIP, relu = e->act == EW_ACT_RELU;
    s->plain = (clip || relu || e->act == EW_ACT_NONE) && !e->add && !e->mask &&
               s->block.n_out == s->g->vectors * LANES;
    s->lo = clip ? e->lo : relu ? 0.0f : -INFINITY;
    s->hi = clip ? e->hi : INFINITY;
}

void EW_K(grouped_run)(const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)
{
    struct grouped g;
    EW_K(grouped_init)(&g, &c->shape);
    const struct ew_conv_axis *a = c->shape.axis;
    strip_fn *const run = strip_for(&g), *const pair = pair_for(&g);
    const vint first = grouped_index(&g);
    for (int64_t tile = begin; tile < end; tile++) {
        struct tile t;
        EW_K(grouped_tile)(&g, tile, &t);
        EW_K(grouped_fill_lines)(&g, &t, c->x, scratch);
        const int64_t row =
            ((t.image * a[0].out + t.at[0]) * a[1].out + t.at[1]) * a[2].out + t.at[2];
        struct strip s = {.g = &g, .conv = c, .block = t.block, .first = first};
        s.w = c->w + t.block.index * grouped_weights(&g);
        find_clamp(&s);
        for (int64_t r = 0, rows; r < t.rows; r += rows) {
            rows = pair && t.rows - r > 1 ? 2 : 1;
            for (int64_t o = 0; o < t.pixels; o += g.px) {
                s.line_buffer =
                    (const float *)scratch + r * a[1].stride * g.line + o * a[2].stride * LANES;
                s.y = (row + r * a[2].out + o) * c->shape.cout;
                s.pixels = min_i64(g.px, t.pixels - o);
                (rows == 2 ? pair : run)(&s);
            }
        }
    }
}
