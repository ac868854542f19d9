/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions on small feature maps and dense layers, forward: y' [O][out][images] = w x'.
 *
 * Images are lanes.  x is transposed once into [in][block of NR images][I][NR], which the
 * micro-kernel reads as packed weights.  Its panel is MR filters in place, of which it reads one
 * tap and at most KC inputs at a time, in memory order.  A tile is some blocks of MR filters. */
#include <math.h>

#include "backend/cpu/kernel/common/transpose_tile.h"
#include "backend/cpu/kernel/unpacked/tap_pairs.h"

#define BLOCKS 4 /* most blocks of filters in a tile, which share their reads of x' */
#define WANTED 8 /* wanted tiles */
/* Lines: a larger burst of prefetches stalls the next product, which is therefore divided. */
#define BURST 64
#define PART  64 /* inputs of each part */

static int64_t positions(const struct ew_conv_axis a[3], bool in)
{
    int64_t n = 1;
    for (int i = 0; i < 3; i++)
        n *= in ? a[i].in : a[i].out;
    return n;
}

/* Appends the pairs of one tap, in the order of outputs. */
static bool add_pairs(struct tap_pairs *p, const struct ew_conv_axis a[3], const int32_t t[3],
                      int tap)
{
    int64_t o[3];
    int out = 0;
    for (o[0] = 0; o[0] < a[0].out; o[0]++)
        for (o[1] = 0; o[1] < a[1].out; o[1]++)
            for (o[2] = 0; o[2] < a[2].out; o[2]++, out++) {
                int64_t in = 0;
                bool inside = true;
                for (int i = 0; i < 3; i++) {
                    const int64_t at = o[i] * a[i].stride - a[i].pad + t[i] * a[i].dilation;
                    inside = inside && at >= 0 && at < a[i].in;
                    in = in * a[i].in + at;
                }
                if (inside && p->count == TAP_PAIRS_PAIRS)
                    return false;
                if (inside)
                    p->pair[p->count++] = (struct tap_pair){tap, out, (int)in};
            }
    return true;
}

bool EW_K(tap_pairs_init)(struct tap_pairs *p, const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    *p = (struct tap_pairs){.batch = s->batch,
                            .cin = s->cin,
                            .cout = s->cout,
                            .taps = (int64_t)a[0].taps * a[1].taps * a[2].taps,
                            .outs = positions(a, false),
                            .ins = positions(a, true)};
    if (s->groups != 1 || p->taps > TAP_PAIRS_TAPS || p->batch < 1 || p->outs < 1 || p->ins < 1 ||
        p->batch * p->outs > TAP_PAIRS_ROWS || p->batch * p->ins > TAP_PAIRS_ROWS)
        return false;
    int32_t t[3];
    int tap = 0;
    for (t[0] = 0; t[0] < a[0].taps; t[0]++)
        for (t[1] = 0; t[1] < a[1].taps; t[1]++)
            for (t[2] = 0; t[2] < a[2].taps; t[2]++) {
                if (!add_pairs(p, a, t, tap))
                    return false;
                p->first[++tap] = p->count;
                p->used += p->first[tap] > p->first[tap - 1];
            }
    return true;
}

void EW_K(tap_pairs_fold)(struct tap_pairs *p, const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    for (int i = 1; i < 3; i++)
        if (a[i].in != 2 || a[i].out != 2 || a[i].taps != 3 || a[i].stride != 1 ||
            a[i].dilation != 1 || a[i].pad != 1)
            return;
    if (a[0].in != 1 || a[0].out != 1 || a[0].taps != 1 || a[0].pad != 0)
        return;
    p->folded = true;
    p->count = FOLDED;
    p->outs = p->ins = FOLDED;
    for (int i = 0; i < FOLDED; i++) {
        p->pair[i] = (struct tap_pair){i, i, i};
        p->first[i] = i;
    }
    p->first[FOLDED] = FOLDED;
}

bool EW_K(tap_pairs_fits)(const struct ew_conv_shape *s)
{
    struct tap_pairs p;
    return EW_K(tap_pairs_init)(&p, s);
}

uint32_t EW_K(tap_pairs_met)(const struct ew_conv_shape *s)
{
    struct tap_pairs p;
    uint32_t met = 0;
    if (!EW_K(tap_pairs_init)(&p, s))
        return UINT32_MAX;
    for (int i = 0; i < p.count; i++)
        met |= 1u << p.pair[i].tap;
    return met;
}

/* Dense layers, and filters that read so much padding that Winograd or implicit GEMM would multiply
 * more. */
bool EW_K(tap_pairs_pays)(const struct ew_conv_shape *s)
{
    struct tap_pairs p;
    if (!EW_K(tap_pairs_init)(&p, s))
        return false;
    if (p.outs == 1 && p.ins == 1 && p.taps == 1)
        return p.batch <= 4 * p.cout;
    if (p.taps == 1 && p.count < p.ins) /* a strided 1x1 shortcut */
        return 8 * p.batch * p.outs <= p.cout && p.cin >= LANES;
    return 4 * p.count <= 3 * p.taps * p.outs && p.cin >= LANES && p.cout >= MR;
}

/* ---- x' ---- */

struct plan {
    struct tap_pairs s;
    int64_t wide;               /* images, rounded up to PIECE */
    int64_t chunks;             /* chunks of KC inputs */
    int64_t blocks, per, tiles; /* blocks of MR filters; blocks in a tile; tiles */
};

static void init(struct plan *p, const struct ew_conv_shape *s)
{
    EW_K(tap_pairs_init)(&p->s, s);
    EW_K(tap_pairs_fold)(&p->s, s);
    p->wide = packed_width(s->batch);
    p->chunks = div_up(s->cin, KC);
    p->blocks = div_up(s->cout, MR);
    p->per = min_i64(max_i64(p->blocks / WANTED, 1), BLOCKS);
    p->tiles = div_up(p->blocks, p->per);
}

size_t EW_K(tap_pairs_transposed)(const struct ew_conv_shape *s)
{
    struct plan p;
    init(&p, s);
    return (size_t)(p.s.ins * p.s.cin * p.wide);
}

int64_t EW_K(tap_pairs_transpose_tiles)(const struct ew_conv_shape *s)
{
    struct plan p;
    init(&p, s);
    return (p.s.folded ? 1 : p.s.ins) * p.chunks;
}

/* Offset of x' for images from n on, n a multiple of NR. */
static int64_t transposed_at(const struct plan *p, int64_t in, int64_t n)
{
    return (in * p->wide + n) * p->s.cin;
}

static void transpose_chunk(const struct plan *p, const struct ew_unpacked_conv *c, int64_t in,
                            int64_t chunk)
{
    const int64_t cin = p->s.cin, step = p->s.ins * cin, last = min_i64((chunk + 1) * KC, cin);
    for (int64_t n = 0; n < p->wide; n += LANES) {
        const int64_t block = n / NR * NR, width = min_i64(NR, p->wide - block);
        float *to = c->transposed + transposed_at(p, in, block) + n - block;
        for (int64_t i = chunk * KC; i < last; i += LANES) {
            vec r[LANES];
            transpose_load(c->x + n * step + in * cin + i, step, p->s.batch - n, last - i, r);
            for (int64_t j = 0; j < min_i64(LANES, last - i); j++)
                store_n(to + (i + j) * width, r[j], width - (n - block));
        }
    }
}

/* Transposes and folds all positions of a chunk. */
static void fold_chunk(const struct plan *p, const struct ew_unpacked_conv *c, int64_t chunk)
{
    const int64_t cin = p->s.cin, last = min_i64((chunk + 1) * KC, cin);
    for (int64_t n = 0; n < p->wide; n += LANES) {
        const int64_t block = n / NR * NR, width = min_i64(NR, p->wide - block);
        for (int64_t i = chunk * KC; i < last; i += LANES) {
            vec r[SQUARE][LANES];
            for (int64_t in = 0; in < SQUARE; in++)
                transpose_load(c->x + (n * SQUARE + in) * cin + i, SQUARE * cin, p->s.batch - n,
                               last - i, r[in]);
            for (int64_t j = 0; j < min_i64(LANES, last - i); j++) {
                const vec pixels[SQUARE] = {r[0][j], r[1][j], r[2][j], r[3][j]};
                vec out[FOLDED];
                fold_pixels(pixels, out, false);
                for (int64_t k = 0; k < FOLDED; k++)
                    store_n(c->transposed + transposed_at(p, k, block) + n - block +
                                (i + j) * width,
                            out[k], width - (n - block));
            }
        }
    }
}

void EW_K(tap_pairs_transpose)(const struct ew_unpacked_conv *c, int64_t begin, int64_t end)
{
    struct plan p;
    init(&p, &c->shape);
    for (int64_t i = begin; i < end; i++)
        if (p.s.folded)
            fold_chunk(&p, c, i);
        else
            transpose_chunk(&p, c, i / p.chunks, i % p.chunks);
}

/* ---- y' ---- */

int64_t EW_K(tap_pairs_tiles)(const struct ew_conv_shape *s)
{
    struct plan p;
    init(&p, s);
    return p.tiles;
}

/* Floats of the panels: one for each tap of folded filters, else one. */
static int64_t panel_size(const struct plan *p)
{
    return (p->s.folded ? FOLDED : 1) * MR * KS;
}

/* Scratch: panels, then y'. */
size_t EW_K(tap_pairs_scratch)(const struct ew_conv_shape *s)
{
    struct plan p;
    init(&p, s);
    return (size_t)(panel_size(&p) + p.per * MR * p.s.outs * p.wide) * sizeof(float);
}

struct work {
    const struct plan *p;
    const struct ew_unpacked_conv *c;
    int64_t first, count; /* filters of the tile */
    int64_t y_step;       /* floats of a filter in y' */
    float *panel, *y;
    int64_t row[MR];
    struct fetch next;
    const float *prefetch; /* instead of `next`: one line for each input; NULL: none */
};

/* One tap and inputs [c0, c0 + kc) of `rows` filters from o (in the tile) on. */
struct piece {
    int64_t tap, c0, kc, o, rows;
};

static const float *filter_at(const struct work *w, int64_t o, int64_t tap, int64_t c)
{
    return w->c->w + ((w->first + o) * w->p->s.taps + tap) * w->p->s.cin + c;
}

static void gather(const struct work *w, const struct piece *at)
{
    const int64_t step = w->p->s.taps * w->p->s.cin;
    const float *from = filter_at(w, at->o, at->tap, at->c0);
    for (int64_t r = 0; r < at->rows; r++)
        copy(w->panel + r * KS, from + r * step, at->kc);
}

/* Folds all taps of the piece's filters, each into its panel. */
static void fold_filters(const struct work *w, const struct piece *at)
{
    const int64_t cin = w->p->s.cin;
    for (int64_t r = 0; r < at->rows; r++) {
        const float *from = filter_at(w, at->o + r, 0, at->c0);
        for (int64_t i = 0; i < at->kc; i += LANES) {
            vec taps[FOLDED], out[FOLDED];
            UNROLL
            for (int t = 0; t < FOLDED; t++)
                taps[t] = load_n(from + t * cin + i, at->kc - i);
            fold_taps(taps, out);
            UNROLL
            for (int t = 0; t < FOLDED; t++)
                store(w->panel + (t * MR + r) * KS + i, out[t]);
        }
    }
}

static void multiply(struct work *w, const struct piece *at)
{
    const struct tap_pairs *s = &w->p->s;
    const int begin = s->first[at->tap], end = s->first[at->tap + 1];
    const int64_t blocks = div_up(w->p->wide, NR);
    const int64_t share = div_up(w->next.pieces * w->next.lines, (end - begin) * blocks);
    const int64_t part = share > BURST ? PART : at->kc;
    const int64_t step = s->taps * s->cin;
    const bool direct = !s->folded && step % 1024 != 0; /* else rows would share cache sets, and are
                                                         * copied */
    const float *panel = w->panel + (s->folded ? at->tap * MR * KS : 0);
    if (s->folded && at->tap == 0)
        fold_filters(w, at);
    else if (!direct && !s->folded)
        gather(w, at);
    const float *a = direct ? filter_at(w, at->o, at->tap, at->c0) : panel;
    for (int64_t n = 0; n < w->p->wide; n += NR)
        for (int i = begin; i < end; i++)
            for (int64_t k = 0; k < at->kc; k += part) {
                const int64_t width = min_i64(NR, w->p->wide - n);
                float *y = w->y + at->o * w->y_step + s->pair[i].out * w->p->wide + n;
                const struct micro m = {.prefetch = w->prefetch,
                                        .a = a + k,
                                        .row_step = step,
                                        .lines = 1,
                                        .w = w->c->transposed +
                                             transposed_at(w->p, s->pair[i].in, n) +
                                             (at->c0 + k) * width,
                                        .kc = min_i64(part, at->kc - k),
                                        .from = y,
                                        .c = y,
                                        .row = w->row,
                                        .width = width,
                                        .lo = -INFINITY,
                                        .hi = INFINITY};
                fetch_some(&w->next, div_up(share, div_up(at->kc, part)));
                if (direct)
                    EW_K(micro_direct)(&m, (int)at->rows);
                else
                    EW_K(micro)(&m, (int)at->rows);
            }
}

/* Unfolds y' to pixels, in place. */
static void unfold(const struct work *w)
{
    const int64_t wide = w->p->wide;
    for (int64_t o = 0; o < w->count; o++)
        for (int64_t n = 0; n < wide; n += LANES) {
            float *y = w->y + o * w->y_step + n;
            vec m[FOLDED], out[SQUARE];
            for (int64_t k = 0; k < FOLDED; k++)
                m[k] = load_n(y + k * wide, wide - n);
            unfold_pixels(m, out, false);
            for (int64_t k = 0; k < SQUARE; k++)
                store_n(y + k * wide, out[k], wide - n);
        }
}

/* Transposes y' to y, with bias and ReLU. */
static void transpose_back(const struct work *w)
{
    const struct tap_pairs *s = &w->p->s;
    const int64_t outs = pixels_of(s, s->outs);
    const vec lo = splat(w->c->relu ? 0.0f : -INFINITY);
    if (s->folded)
        unfold(w);
    for (int64_t out = 0; out < outs; out++)
        for (int64_t o = 0; o < w->count; o += LANES) {
            const int64_t have = min_i64(w->count - o, LANES), at = w->first + o;
            const vec bias = w->c->bias ? load_n(w->c->bias + at, have) : (vec){0};
            for (int64_t n = 0; n < s->batch; n += LANES) {
                vec r[LANES];
                transpose_load(w->y + o * w->y_step + out * w->p->wide + n, w->y_step, have,
                               s->batch - n, r);
                for (int64_t j = 0; j < min_i64(LANES, s->batch - n); j++)
                    store_n(w->c->y + ((n + j) * outs + out) * s->cout + at, vmax(r[j] + bias, lo),
                            have);
            }
        }
}

/* Advances to the first tap of the next filters; false after the last. */
static bool advance_filters(const struct work *w, struct piece *at)
{
    at->tap = 0;
    at->o += MR;
    if (at->o >= w->count) {
        at->o = 0;
        at->c0 += at->kc;
    }
    at->kc = min_i64(KC, w->p->s.cin - at->c0);
    at->rows = min_i64(MR, w->count - at->o);
    return at->kc > 0;
}

/* Advances to the next piece of the tile; false after the last.  With folding, all taps of the same
 * filters come first. */
static bool advance(const struct work *w, struct piece *at)
{
    const struct tap_pairs *s = &w->p->s;
    if (s->folded && at->tap >= 0 && at->tap < FOLDED - 1) {
        at->tap++;
        return true;
    }
    if (s->folded)
        return advance_filters(w, at);
    at->o += MR;
    if (at->o >= w->count) {
        at->o = 0;
        at->c0 += KC;
    }
    if (at->c0 >= s->cin || at->tap < 0) {
        at->c0 = 0;
        do
            at->tap++;
        while (at->tap < s->taps && s->first[at->tap] == s->first[at->tap + 1]);
    }
    at->kc = min_i64(KC, s->cin - at->c0);
    at->rows = min_i64(MR, w->count - at->o);
    return at->tap < s->taps;
}

/* With folding, prefetches one part of the next filters during each tap.  They are contiguous in
 * memory, unless inputs are divided into chunks. */
static void plan_soon(struct work *w, const struct piece *at)
{
    const int64_t o = at->o + MR, rows = min_i64(MR, w->p->s.cout - w->first - o);
    const bool more = rows > 0 && w->p->chunks == 1;
    w->prefetch = more ? filter_at(w, o, 0, 0) + at->tap * rows * w->p->s.cin : NULL;
}

/* Plans the prefetch of the next piece, or of the next tile's first. */
static void plan_fetch(struct work *w, const struct piece *next, bool more)
{
    const struct tap_pairs *s = &w->p->s;
    const int64_t o = more ? next->o : w->count;
    const int64_t tap = more ? next->tap : s->count ? s->pair[0].tap : 0;
    const int64_t rows = more ? next->rows : min_i64(MR, s->cout - w->first - o);
    w->next = (struct fetch){.at = filter_at(w, o, tap, more ? next->c0 : 0),
                             .step = s->taps * s->cin,
                             .pieces = max_i64(rows, 0),
                             .lines = div_up(more ? next->kc : min_i64(KC, s->cin), LINE)};
}

static void run_tile(struct work *w, int64_t tile)
{
    const struct tap_pairs *s = &w->p->s;
    w->first = tile * w->p->per * MR;
    w->count = min_i64(w->p->per * MR, s->cout - w->first);
    clear(w->y, w->count * w->y_step);
    struct piece at = {.tap = -1, .o = w->count};
    bool more = advance(w, &at);
    while (more) {
        struct piece next = at;
        more = advance(w, &next);
        if (s->folded)
            plan_soon(w, &at);
        else
            plan_fetch(w, &next, more);
        multiply(w, &at);
        at = next;
    }
    transpose_back(w);
}

void EW_K(tap_pairs_run)(const struct ew_unpacked_conv *c, int64_t begin, int64_t end,
                         void *scratch)
{
    struct plan p;
    init(&p, &c->shape);
    struct work w = {.p = &p, .c = c, .y_step = p.s.outs * p.wide, .panel = scratch};
    w.y = w.panel + panel_size(&p);
    for (int r = 0; r < MR; r++)
        w.row[r] = r * w.y_step;
    for (int64_t i = begin; i < end; i++)
        run_tile(&w, i);
}
