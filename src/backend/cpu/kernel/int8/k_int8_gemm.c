/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit implicit GEMM: geometry, packing, panels and tiles. */
#include "backend/cpu/kernel/int8/int8_gemm.h"

/* ---- Geometry ---- */

#define LINE_BUFFER_RUN      256        /* most bytes of a run for which a line buffer is used */
#define LINE_BUFFER_RUN_MOST 1536       /* the same if a row of outputs fills a panel */
#define LINE_BUFFER_BYTES    (24 << 10) /* most bytes of a line buffer, so that it stays in L1 */
#define LINE_BUFFER_MOST     (48 << 10) /* the same if a panel would take more */
#define BYTES_K              48 /* least k for which finding the largest pixels is worth it */
/* Least channels for it: with fewer, x is an image of the whole range. */
#define BYTES_CHANNELS 5

static void plan_tiles(struct qcore *c)
{
    const int64_t block = WIDE * c->words * (int64_t)sizeof(int32_t);
    c->blocks = div_up(c->columns, WIDE);
    c->o_block = min_i64(max_i64(Q_L2 / max_i64(block, 1), 1), c->blocks);
    c->o_tiles = div_up(c->blocks, c->o_block);
    c->o_block = div_up(c->blocks, max_i64(c->o_tiles, 1)); /* of about equal size */
    c->o_tiles = div_up(c->blocks, max_i64(c->o_block, 1));
    if (c->line_buffer) {
        c->row_tiles = c->batch * c->axis[1].out;
        c->tiles = c->row_tiles * c->o_tiles;
        return;
    }
    const int64_t panels = div_up(c->rows, QMR);
    const int64_t most = min_i64(max_i64(panels * c->groups * c->o_tiles / MIN_WORK, 1), ROW_MAX);
    c->row_tiles = div_up(panels, most);
    c->row_block = c->row_tiles ? div_up(panels, c->row_tiles) : 1;
    c->row_tiles = div_up(panels, c->row_block);
    c->tiles = c->row_tiles * c->groups * c->o_tiles;
}

/* Whether pixels are read in place, from a line buffer or from a panel. */
static void plan_feed(struct qcore *c)
{
    const struct ew_conv_axis *a = c->axis;
    c->bytes = WORD_BYTES || (SUMS_16 && c->k >= BYTES_K && c->cg >= BYTES_CHANNELS);
    c->matrix = true;
    for (int i = 0; i < 3; i++)
        c->matrix =
            c->matrix && a[i].taps == 1 && a[i].stride == 1 && a[i].pad == 0 && a[i].in == a[i].out;
    /* Rows a multiple of 4 KiB apart share a set of L1. */
    c->flat = c->matrix && word_of(c) == 4 && X_OFFSET == 0 && c->cg % STEP_BYTES == 0 &&
              c->x_step[2] % 4096 != 0;
    const int64_t reach = (int64_t)(a[2].out - 1) * a[2].stride + a[2].taps;
    c->line = div_up(reach * c->cg * size_of(c) + PANEL_SLACK, 64) * 64;
    const int64_t all = a[1].taps * c->line, panel = QMR * c->k * size_of(c);
    c->line_buffer = c->groups == 1 && a[0].taps == 1 && a[0].in == 1 && a[0].out == 1 &&
                     a[0].pad == 0 && a[2].taps > 1 && a[2].dilation == 1 && a[2].out > 0 &&
                     c->run <= (a[2].out < QMR ? LINE_BUFFER_RUN : LINE_BUFFER_RUN_MOST) &&
                     (all <= LINE_BUFFER_BYTES || (all <= LINE_BUFFER_MOST && all < panel));
    c->lines = c->line_buffer ? a[1].taps : 1;
    c->line_k = c->k / max_i64(c->lines, 1);
    const int64_t step = c->bytes ? STEP_WORDS : 1;
    c->line_words = div_up(c->line_k, step * word_of(c)) * step;
    c->words = c->lines * c->line_words;
#if SUMS_16
    c->limits = c->bytes ? div_up(c->line_words / step, LIMITS) * LIMITS : 0;
#else
    c->limits = 0;
#endif
    c->panel = div_up(c->words * (int64_t)sizeof(int32_t) + PANEL_SLACK, 64) * 64;
    c->panel += c->panel % 4096 == 0 ? 64 : 0;
}

void EW_K(qcore_init)(struct qcore *c, const struct ew_conv_shape *s)
{
    memcpy(c->axis, s->axis, sizeof(c->axis));
    EW_KF(implicit_gemm_trim)(c->axis, &c->used);
    const struct ew_conv_axis *a = c->axis;
    c->batch = s->batch;
    c->groups = s->groups;
    c->cin = s->cin;
    c->cout = s->cout;
    c->cg = s->cin / s->groups;
    c->og = s->cout / s->groups;
    int64_t step = s->cin;
    c->rows = s->batch;
    for (int i = 2; i >= 0; i--) {
        c->x_step[i] = step;
        step *= a[i].in;
        c->rows *= a[i].out;
    }
    c->x_image = step;
    /* Adjacent taps along the width are contiguous in memory: one run. */
    const bool whole = a[2].dilation == 1 && c->groups == 1;
    c->run = whole ? a[2].taps * c->cg : c->cg;
    c->runs = (int64_t)a[0].taps * a[1].taps * (whole ? 1 : a[2].taps);
    c->k = c->run * c->runs;
    c->columns = div_up(c->og, LANES) * LANES;
    plan_feed(c);
    plan_tiles(c);
}

/* ---- Packing: a tile is a block of WIDE columns ---- */

size_t EW_K(int8_gemm_pack_size)(const struct ew_conv_shape *s)
{
    struct qcore c;
    EW_K(qcore_init)(&c, s);
    return (size_t)(c.groups * c.columns) * sizeof(int32_t) * (size_t)(2 + c.words) +
           (size_t)(c.groups * c.blocks * c.lines * 2 * c.limits);
}

int64_t EW_K(int8_gemm_pack_tiles)(const struct ew_conv_shape *s)
{
    struct qcore c;
    EW_K(qcore_init)(&c, s);
    return c.groups * c.blocks;
}

/* The value of weight k of output o; k counts over used taps. */
INLINE int weight_at(const struct qcore *c, const struct ew_qconv_weights *w, int64_t o, int64_t k)
{
    const struct used *u = &c->used;
    const int64_t tap = k / c->cg, i = k % c->cg;
    const int64_t t2 = tap % c->axis[2].taps + u->first[2];
    const int64_t t1 = tap / c->axis[2].taps % c->axis[1].taps + u->first[1];
    const int64_t t0 = tap / c->axis[2].taps / c->axis[1].taps + u->first[0];
    const int64_t at = w->by_row
                           ? k * c->cout + o
                           : (((o * u->all[0] + t0) * u->all[1] + t1) * u->all[2] + t2) * c->cg + i;
    return (int8_t)(w->w[at] ^ w->flip);
}

/* Sets element j of the word in `lane` of a vector. */
INLINE void put_weight(const struct qcore *c, int32_t *vector, int lane, int64_t j, int value)
{
    if (!c->bytes)
        ((int16_t *)vector)[WORD_AT(lane, j)] = (int16_t)value;
    else
        ((int8_t *)vector)[lane * 4 + j] = (int8_t)value;
}

/* One vector of a block: its weights, bias and ratio; `o` is the block's first column. */
struct pack_vector {
    int32_t *words; /* the first word */
    int64_t step;   /* words between consecutive words of a lane */
    float *ratio;
    int32_t *bias;
    int64_t group, o;
    int v, vectors;
};

static void pack_lane(const struct qcore *c, const struct ew_qconv_weights *w,
                      const struct pack_vector *p, int lane)
{
    const int64_t column = p->o + (p->vectors == 2 ? column_of(p->v, lane) : lane);
    const bool exists = column < c->og;
    const int64_t o = p->group * c->og + column;
    const int64_t word = word_of(c), line = c->line_words * word;
    uint32_t sum = 0;
    for (int64_t i = 0; i < c->words * word; i++) {
        const int64_t k = i / line * c->line_k + i % line;
        const int value = exists && i % line < c->line_k ? weight_at(c, w, o, k) : 0;
        put_weight(c, p->words + i / word * p->step, lane, i % word, value);
        sum += (uint32_t)value;
    }
    p->ratio[lane] = exists ? w->ratio[o] : 0;
    const uint32_t zero = (uint32_t)(w->of_x.zero - pixel_low(c, w->of_x.zero));
    p->bias[lane] = exists ? (int32_t)((uint32_t)(w->bias ? w->bias[o] : 0) - zero * sum) : 0;
}

#if SUMS_16
/* The largest sum of weights of equal sign among those that are added in 16 bits: two of a word
 * and, with words = 2, two of the next. */
static int most_of_sum(const int8_t *w, int64_t columns, int words)
{
    int most = 0;
    for (int64_t i = 0; i < 2 * columns; i++, w += 2) {
        int above = 0, below = 0;
        for (int j = 0; j < 2 * words; j++) {
            const int value = w[j / 2 * columns * 4 + j % 2];
            above += value > 0 ? value : 0;
            below += value < 0 ? -value : 0;
        }
        most = above > most ? above : most;
        most = below > most ? below : most;
    }
    return most;
}

/* The largest pixel for which sums cannot saturate.  Pixels that pixel_low makes negative appear as
 * bytes larger than `above`, so they always exceed the limit. */
static uint8_t limit_of(int most, int64_t above)
{
    return (uint8_t)min_i64(INT16_MAX / max_i64(most, 1), above);
}

static void pack_limits(const struct qcore *c, const struct ew_qconv_weights *q, const int8_t *w,
                        int64_t columns, uint8_t *limits)
{
    const int64_t above = 255 - pixel_low(c, q->of_x.zero);
    memset(limits, 255, (size_t)(c->lines * 2 * c->limits));
    for (int64_t line = 0; line < c->lines; line++, limits += 2 * c->limits)
        for (int64_t i = 0; i < c->line_words / 2; i++, w += columns * STEP_BYTES) {
            const int first = most_of_sum(w, columns, 1);
            const int next = most_of_sum(w + columns * 4, columns, 1);
            limits[i] = limit_of(most_of_sum(w, columns, 2), above);
            limits[c->limits + i] = limit_of(first > next ? first : next, above);
        }
}
#endif

void EW_K(int8_gemm_pack)(const struct ew_conv_shape *s, const struct ew_qconv_weights *w,
                          void *packed, int64_t begin, int64_t end)
{
    struct qcore c;
    EW_K(qcore_init)(&c, s);
    float *ratio = packed;
    int32_t *bias = (int32_t *)packed + c.groups * c.columns;
    int32_t *words = bias + c.groups * c.columns;
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t group = tile / c.blocks, o = tile % c.blocks * WIDE;
        const int64_t at = group * c.columns + o;
        const int vectors = c.columns - o > LANES ? 2 : 1;
        for (int v = 0; v < vectors; v++) {
            const struct pack_vector p = {.words = words + at * c.words + v * LANES,
                                          .step = vectors * LANES,
                                          .ratio = ratio + at + v * LANES,
                                          .bias = bias + at + v * LANES,
                                          .group = group,
                                          .o = o,
                                          .v = v,
                                          .vectors = vectors};
            for (int lane = 0; lane < LANES; lane++)
                pack_lane(&c, w, &p, lane);
        }
#if SUMS_16
        if (!c.bytes)
            continue;
        uint8_t *const limits = (uint8_t *)(words + c.groups * c.columns * c.words);
        pack_limits(&c, w, (const int8_t *)(words + at * c.words), vectors * LANES,
                    limits + tile * c.lines * 2 * c.limits);
#endif
    }
}

/* ---- Panels ---- */

/* Copies n bytes of x in the panel's form; may write up to PANEL_SLACK bytes more. */
#if defined(HAS_VNNI) || SUMS_16
INLINE void put_bytes(const struct qcore *c, uint8_t *to, const uint8_t *from, int64_t n,
                      struct ew_qbyte of)
{
    const vbig flip = of.flip - (vbig){0}, low = (uint8_t)pixel_low(c, of.zero) - (vbig){0};
    for (; n >= BIG; n -= BIG, from += BIG, to += BIG)
        store_big(to, (load_big(from, BIG) ^ flip) - low, BIG);
    if (n > 0)
        store_big(to, (load_big(from, n) ^ flip) - low, n);
}
#endif

#if SUMS_16
INLINE void put_16(uint16_t *to, const uint8_t *from, __m128i flip)
{
    const __m128i x = _mm_xor_si128(_mm_loadu_si128((const void *)from), flip);
    _mm256_storeu_si256((void *)to, _mm256_cvtepu8_epi16(x));
}

INLINE void put_run(const struct qcore *c, uint8_t *panel, const uint8_t *from, int64_t n,
                    struct ew_qbyte of)
{
    uint16_t *const to = (void *)panel;
    const __m128i flip = _mm_set1_epi8((char)of.flip);
    if (c->bytes) {
        put_bytes(c, panel, from, n, of);
        return;
    }
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        put_16(to + i, from + i, flip);
    if (i < n && n >= 16)
        put_16(to + n - 16, from + n - 16, flip); /* overlaps the previous store */
    else
        for (; i < n; i++)
            to[i] = from[i] ^ of.flip;
}
#elif defined(HAS_VNNI)
#define put_run put_bytes
#else
INLINE void put_run(const struct qcore *c, uint8_t *panel, const uint8_t *from, int64_t n,
                    struct ew_qbyte of)
{
#if WORD_BYTES
    uint8_t *const to = panel;
#else
    uint16_t *const to = (void *)panel;
#endif
    const uint8_t flip = of.flip ^ X_OFFSET;
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i] ^ flip;
}
#endif

INLINE void put_zeros(const struct qcore *c, uint8_t *panel, int64_t n, struct ew_qbyte of)
{
    const uint8_t value = (uint8_t)(of.zero - pixel_low(c, of.zero));
    if (c->bytes)
        for (int64_t i = 0; i < n; i++)
            panel[i] = value;
    else
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)(void *)panel)[i] = value;
}

struct position {
    const uint8_t *image;
    int64_t at[3]; /* input coordinates of tap 0, may be outside */
};

/* Gathers one run, whose first tap reads position p. */
INLINE void gather_run(const struct qcore *c, const struct ew_qconv *q, const struct position *p,
                       uint8_t *to)
{
    const struct ew_conv_axis *a = c->axis;
    const int64_t taps = c->run / c->cg;
    const bool inside = p->at[0] >= 0 && p->at[0] < a[0].in && p->at[1] >= 0 && p->at[1] < a[1].in;
    const uint8_t *x =
        p->image + p->at[0] * c->x_step[0] + p->at[1] * c->x_step[1] + p->at[2] * c->x_step[2];
    if (inside && p->at[2] >= 0 && p->at[2] + taps <= a[2].in) {
        put_run(c, to, x, c->run, q->of_x);
        return;
    }
    const int64_t lo = min_i64(max_i64(-p->at[2], 0), taps) * c->cg;
    const int64_t hi = inside ? max_i64(min_i64(a[2].in - p->at[2], taps) * c->cg, lo) : lo;
    put_zeros(c, to, lo, q->of_x);
    if (hi > lo)
        put_run(c, to + lo * size_of(c), x + lo, hi - lo, q->of_x);
    put_zeros(c, to + hi * size_of(c), c->run - hi, q->of_x);
}

INLINE void gather_pixel(const struct qcore *c, const struct ew_qconv *q, const struct position *p,
                         uint8_t *to)
{
    const struct ew_conv_axis *a = c->axis;
    const int64_t across = c->run == c->cg ? a[2].taps : 1; /* runs along the width */
    for (int64_t t0 = 0; t0 < a[0].taps; t0++)
        for (int64_t t1 = 0; t1 < a[1].taps; t1++)
            for (int64_t t2 = 0; t2 < across; t2++) {
                const struct position at = {p->image,
                                            {p->at[0] + t0 * a[0].dilation,
                                             p->at[1] + t1 * a[1].dilation,
                                             p->at[2] + t2 * a[2].dilation}};
                gather_run(c, q, &at, to);
                to += c->run * size_of(c);
            }
}

/* Gathers output pixels [row, row + count) of one group. */
static void gather(const struct qcore *c, const struct ew_qconv *q, int64_t row, int count,
                   int64_t group, uint8_t *panel)
{
    const struct ew_conv_axis *a = c->axis;
    if (c->matrix) {
        const uint8_t *x = q->x + row * c->cin + group * c->cg;
        for (int r = 0; r < count; r++, x += c->cin)
            put_run(c, panel + r * c->panel, x, c->cg, q->of_x);
        return;
    }
    int64_t o[3], n = row;
    for (int i = 2; i >= 0; i--) {
        o[i] = n % a[i].out;
        n /= a[i].out;
    }
    for (int r = 0; r < count; r++) {
        struct position p = {.image = q->x + n * c->x_image + group * c->cg};
        for (int i = 0; i < 3; i++)
            p.at[i] = o[i] * a[i].stride - a[i].pad;
        gather_pixel(c, q, &p, panel + r * c->panel);
        for (int i = 2; i >= 0 && ++o[i] == a[i].out; i--) {
            o[i] = 0;
            n += i == 0;
        }
    }
}

/* Copies the input lines that output row `row` (over all images) reads, with their padding. */
static void fill_lines(const struct qcore *c, const struct ew_qconv *q, int64_t row,
                       uint8_t *line_buffer)
{
    const struct ew_conv_axis *a = c->axis;
    const int64_t all = ((int64_t)(a[2].out - 1) * a[2].stride + a[2].taps) * c->cg;
    const int64_t y0 = row % a[1].out * a[1].stride - a[1].pad;
    const int64_t lo = min_i64(max_i64((int64_t)a[2].pad * c->cg, 0), all);
    const int64_t hi = max_i64(min_i64(((int64_t)a[2].in + a[2].pad) * c->cg, all), lo);
    for (int64_t t = 0; t < a[1].taps; t++, line_buffer += c->line) {
        const int64_t y = y0 + t * a[1].dilation;
        uint8_t *const to = line_buffer;
        if (y < 0 || y >= a[1].in) {
            put_zeros(c, to, all, q->of_x);
            continue;
        }
        const uint8_t *x = q->x + row / a[1].out * c->x_image + y * c->x_step[1];
        put_zeros(c, to, lo, q->of_x);
        put_run(c, to + lo * size_of(c), x + lo - (int64_t)a[2].pad * c->cg, hi - lo, q->of_x);
        put_zeros(c, to + hi * size_of(c), all - hi, q->of_x);
    }
}

/* ---- Tiles ---- */

int64_t EW_K(int8_gemm_tiles)(const struct ew_conv_shape *s)
{
    struct qcore c;
    EW_K(qcore_init)(&c, s);
    return c.tiles;
}

/* Bytes of the line buffer or a panel; with SUMS_16 `wide` and `most` follow. */
static int64_t pixel_bytes(const struct qcore *c)
{
    return c->line_buffer ? c->lines * c->line : QMR * c->panel;
}

static int64_t wide_bytes(const struct qcore *c)
{
    return SUMS_16 && c->bytes ? QMR * wide_row(c->words) : 0;
}

size_t EW_K(int8_gemm_scratch)(const struct ew_conv_shape *s)
{
    struct qcore c;
    EW_K(qcore_init)(&c, s);
    return (size_t)(pixel_bytes(&c) + wide_bytes(&c) + c.lines * c.limits);
}

/* A panel, and the blocks of columns [block, blocks) to compute for it. */
struct panel {
    const uint8_t *a;
    int64_t step; /* bytes between rows */
    int64_t row;
    int rows;
    int64_t group, block, blocks;
    uint8_t *wide, *most; /* see struct qmicro */
};

#if SUMS_16
/* The maximum of each 8 bytes, in their first byte. */
INLINE __m256i largest_of_8(__m256i x)
{
    x = _mm256_max_epu8(x, _mm256_srli_epi64(x, 32));
    x = _mm256_max_epu8(x, _mm256_srli_epi64(x, 16));
    return _mm256_max_epu8(x, _mm256_srli_epi64(x, 8));
}

/* The largest pixel of each step of a line, over all rows: four steps at a time, then single ones,
 * because nothing beyond the line may be read. */
static void find_most(const struct qmicro *m, const uint8_t *line, int rows, uint8_t *most)
{
    const uint8_t *a[QMR];
    for (int r = 0; r < QMR; r++)
        a[r] = line + (r < rows ? r : 0) * m->row_step;
    const int64_t bytes = m->words * (int64_t)sizeof(int32_t);
    int64_t i = 0;
    for (; i + 32 <= bytes; i += 32, most += 4) {
        __m256i x = _mm256_loadu_si256((const void *)(a[0] + i));
        UNROLL
        for (int r = 1; r < QMR; r++)
            x = _mm256_max_epu8(x, _mm256_loadu_si256((const void *)(a[r] + i)));
        x = _mm256_shuffle_epi8(largest_of_8(x), _mm256_set1_epi16(0x0800));
        const __m128i low = _mm256_castsi256_si128(x), high = _mm256_extracti128_si256(x, 1);
        const int32_t four = _mm_cvtsi128_si32(_mm_unpacklo_epi16(low, high));
        memcpy(most, &four, sizeof(four));
    }
    for (; i < bytes; i += STEP_BYTES, most++) {
        __m128i x = _mm_loadl_epi64((const void *)(a[0] + i));
        UNROLL
        for (int r = 1; r < QMR; r++)
            x = _mm_max_epu8(x, _mm_loadl_epi64((const void *)(a[r] + i)));
        *most = (uint8_t)_mm256_extract_epi8(largest_of_8(_mm256_zextsi128_si256(x)), 0);
    }
}
#endif

static void run_panel(const struct qcore *c, const struct ew_qconv *q, const struct panel *p)
{
    const struct ew_qend *e = &q->end;
    const int64_t end = min_i64(p->blocks * WIDE, c->og);
    struct qmicro m; /* set member by member: clearing it first would dominate this function */
    m.a = p->a;
    m.row_step = p->step;
    m.words = c->line_words;
    m.lines = c->lines;
    m.line_step = c->line;
    m.end = e;
    m.plain = is_plain(e);
    m.y_step = c->cout;
#if SUMS_16
    m.most = p->most;
    m.limits = c->limits;
    m.bytes = c->bytes;
    m.low = (uint8_t)pixel_low(c, q->of_x.zero);
    m.wide = p->wide;
    m.is_widened = false;
    for (int64_t l = 0; c->bytes && l < c->lines; l++)
        find_most(&m, m.a + l * m.line_step, p->rows, p->most + l * m.limits);
#endif
    for (int64_t o = p->block * WIDE, width; o < end; o += width) {
        const int64_t at = p->group * c->columns + o;
        const int64_t y = p->row * c->cout + p->group * c->og + o;
        m.w = packed_words(c, q->packed) + at * c->words * (int64_t)sizeof(int32_t);
#if SUMS_16
        m.limit = packed_limits(c, q->packed) +
                  (p->group * c->blocks + o / WIDE) * c->lines * 2 * c->limits;
#endif
        m.bias = packed_bias(c, q->packed) + at;
        m.ratio = packed_ratio(q->packed) + at;
        m.y = e->to_float ? (void *)((float *)q->y + y) : (void *)((uint8_t *)q->y + y);
        m.add = e->add ? e->add + y : NULL;
        width = end - o;
        if (width > WIDE && width % WIDE > 0 && width % WIDE <= LANES)
            width -= width % WIDE; /* a last block of one vector is computed separately */
        m.width = width;
        EW_K(qmicro)(&m, p->rows);
    }
}

static void run_tile(const struct qcore *c, const struct ew_qconv *q, int64_t tile, void *scratch)
{
    const int64_t o_tile = tile % c->o_tiles, group = tile / c->o_tiles % c->groups;
    const int64_t first = tile / c->o_tiles / c->groups * c->row_block * QMR;
    const int64_t last = min_i64(first + c->row_block * QMR, c->rows);
    const bool direct = c->flat && q->of_x.flip == 0 && pixel_low(c, q->of_x.zero) == 0;
    struct panel p = {.step = direct ? c->cin : c->panel,
                      .group = group,
                      .block = o_tile * c->o_block,
                      .blocks = min_i64((o_tile + 1) * c->o_block, c->blocks),
                      .wide = (uint8_t *)scratch + pixel_bytes(c),
                      .most = (uint8_t *)scratch + pixel_bytes(c) + wide_bytes(c)};
    for (p.row = first; p.row < last; p.row += QMR) {
        p.rows = (int)min_i64(QMR, last - p.row);
        p.a = direct ? q->x + p.row * c->cin + group * c->cg : scratch;
        if (!direct)
            gather(c, q, p.row, p.rows, group, scratch);
        run_panel(c, q, &p);
    }
}

/* One row of outputs, from a line buffer. */
static void run_buffered_row(const struct qcore *c, const struct ew_qconv *q, int64_t tile,
                             void *scratch)
{
    /* Rows vary fastest: a row is short, and the weights stay in the cache. */
    const int64_t o_tile = tile / c->row_tiles, row = tile % c->row_tiles, out = c->axis[2].out;
    struct panel p = {.step = c->axis[2].stride * c->cg * size_of(c),
                      .block = o_tile * c->o_block,
                      .blocks = min_i64((o_tile + 1) * c->o_block, c->blocks),
                      .wide = (uint8_t *)scratch + pixel_bytes(c),
                      .most = (uint8_t *)scratch + pixel_bytes(c) + wide_bytes(c)};
    fill_lines(c, q, row, scratch);
    for (int64_t o = 0; o < out; o += QMR) {
        p.row = row * out + o;
        p.rows = (int)min_i64(QMR, out - o);
        p.a = (const uint8_t *)scratch + o * p.step;
        run_panel(c, q, &p);
    }
}

void EW_K(int8_gemm_run)(const struct ew_qconv *q, int64_t begin, int64_t end, void *scratch)
{
    struct qcore c;
    EW_K(qcore_init)(&c, q->shape);
    for (int64_t tile = begin; tile < end; tile++)
        (c.line_buffer ? run_buffered_row : run_tile)(&c, q, tile, scratch);
}
