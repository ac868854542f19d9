/* SPDX-License-Identifier: Apache-2.0 */
/* Scatter gradient: dgrad and wgrad of convolutions with very sparse dy.  After a max pool, ReLU
 * and perhaps dropout a tenth of its elements are non-zero.
 *
 * Filters and images are channels-last, so the taps of a line of the filter are contiguous, and so
 * are the pixels that they read: one element of dy contributes itself times a few long vectors to
 * dx and dw:
 *
 *   dx of a window  += dy[o] * filter o,     for the o of a pixel that are not zero
 *   dw of output o  += dy[pixel] * its window, for the pixels of o that are not zero
 *
 * with up to WIDTH vectors of accumulators in registers.  Images are copied into padded frames.  A
 * tile is a part of the images; its partial dw goes to `shared`. */
#include "backend/cpu/kernel/gemm/wgrad_sum.h"
#include "backend/cpu/kernel/sparse/nonzero_bits.h"

#define WIDTH   12          /* most vectors of accumulators in registers */
#define PARTS   4           /* parts of the images */
#define FRAME   (160 << 10) /* most floats of a frame, which stays in L2 */
#define ENTRIES (128 << 10) /* most elements of dy listed at a time */
#define FILTER  8192        /* most floats of a filter */

struct plan {
    const struct ew_conv_shape *s;
    int64_t stride, high, wide, taps; /* high, wide: of dy; taps: lines of a filter */
    int64_t line, vecs;               /* floats of a line of the filter; vectors of all lines */
    int64_t frame_high, frame_wide;   /* size of a padded image */
    int64_t rows;                     /* rows of dy listed at a time */
};

/* Vectors of a line of the filter. */
INLINE int64_t line_vecs(const struct plan *p)
{
    return div_up(p->line, LANES);
}

INLINE int64_t frame_size(const struct plan *p, int64_t high)
{
    return high * p->frame_wide * p->s->cin;
}

static void init(struct plan *p, const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *y = &s->axis[1], *x = &s->axis[2];
    *p = (struct plan){.s = s,
                       .stride = y->stride,
                       .high = y->out,
                       .wide = x->out,
                       .taps = y->taps,
                       .line = (int64_t)x->taps * s->cin,
                       .frame_high = (int64_t)(y->out - 1) * y->stride + y->taps,
                       .frame_wide = (int64_t)(x->out - 1) * x->stride + x->taps};
    p->vecs = p->taps * line_vecs(p);
    const int64_t row = max_i64(p->wide * s->cout, 1), step = max_i64(frame_size(p, y->stride), 1);
    p->rows = min_i64(ENTRIES / row, (FRAME - frame_size(p, y->taps)) / step + 1);
    p->rows = min_i64(max_i64(p->rows, 1), p->high);
}

/* With dgrad, channels must be whole vectors and a frame of dx must fit into L2. */
bool EW_K(scatter_grad_fits)(const struct ew_conv_shape *s, bool data)
{
    struct plan p;
    const struct ew_conv_axis *z = &s->axis[0], *y = &s->axis[1], *x = &s->axis[2];
    if (s->groups != 1 || s->input_norm || s->x_step || z->in != 1 || z->out != 1 || z->taps != 1 ||
        y->stride != x->stride || y->dilation != 1 || x->dilation != 1 || y->pad < 0 ||
        x->pad < 0 || s->batch < PARTS || y->out < 1 || x->out < 1 || y->taps * x->taps == 1)
        return false;
    init(&p, s);
    return p.taps * p.line <= FILTER && frame_size(&p, p.taps) <= FRAME &&
           p.wide * s->cout <= ENTRIES &&
           (!data || (p.line % LANES == 0 && frame_size(&p, p.frame_high) <= FRAME));
}

int64_t EW_K(scatter_grad_tiles)(const struct ew_conv_shape *s)
{
    return PARTS;
}

/* Floats of a part's sums: [cout][taps][whole vectors of a line], then [cout] for the bias. */
INLINE int64_t part_size(const struct plan *p)
{
    return p->s->cout * (p->vecs * LANES + 1);
}

size_t EW_K(scatter_grad_shared)(const struct ew_conv_shape *s)
{
    struct plan p;
    init(&p, s);
    return (size_t)(PARTS * part_size(&p));
}

/* Elements of dy: their values, and offsets of their multiplicands. */
struct entries {
    int64_t n;
    int32_t *at;
    float *v;
};

struct work {
    const struct plan *p;
    const struct ew_unpacked_grads *g;
    float *frame; /* padded image of x or dx */
    float *sums;  /* dw and db of this part */
    float *bias;
    int32_t *count; /* [cout] */
    int32_t *at;    /* [cout][rows * wide] */
    float *v;
};

static int64_t listed(const struct plan *p)
{
    return p->s->cout * p->rows * p->wide;
}

size_t EW_K(scatter_grad_scratch)(const struct ew_conv_shape *s)
{
    struct plan p;
    init(&p, s);
    return (size_t)(FRAME + LANES + s->cout + LANES + 2 * listed(&p)) * sizeof(float);
}

/* ---- Sums over elements ---- */

/* Lines of vectors: multiplicands b, b_line floats apart, and sums c, c_line apart. */
struct lines {
    const float *b;
    float *c;
    int64_t b_line, c_line;
};

/* c += sum over elements of v * b, for `lines` lines of `width` vectors. */
INLINE void add_entries(const struct entries *e, struct lines l, const int lines, const int width)
{
    vec sum[WIDTH];
    UNROLL
    for (int j = 0; j < lines * width; j++)
        sum[j] = load(l.c + j / width * l.c_line + j % width * LANES);
    for (int64_t i = 0; i < e->n; i++) {
        const vec s = splat(e->v[i]);
        const float *b = l.b + e->at[i];
        UNROLL
        for (int j = 0; j < lines * width; j++)
            sum[j] += s * load(b + j / width * l.b_line + j % width * LANES);
    }
    UNROLL
    for (int j = 0; j < lines * width; j++)
        store(l.c + j / width * l.c_line + j % width * LANES, sum[j]);
}

#define PIECE_OF(lines, n)                                                                         \
    case n:                                                                                        \
        add_entries(e, l, lines, n);                                                               \
        break

/* Three short lines at a time: a single one has too few accumulators to hide the latency of
 * FMAs. */
static void add_three(const struct entries *e, struct lines l, int64_t width)
{
    switch (width) {
        PIECE_OF(3, 1);
        PIECE_OF(3, 2);
        PIECE_OF(3, 3);
        PIECE_OF(3, 4);
    }
}

static void add_one(const struct entries *e, struct lines l, int64_t width)
{
    switch (width) {
        PIECE_OF(1, 1);
        PIECE_OF(1, 2);
        PIECE_OF(1, 3);
        PIECE_OF(1, 4);
        PIECE_OF(1, 5);
        PIECE_OF(1, 6);
        PIECE_OF(1, 7);
        PIECE_OF(1, 8);
        PIECE_OF(1, 9);
        PIECE_OF(1, 10);
        PIECE_OF(1, 11);
        PIECE_OF(1, 12);
    }
}

/* All lines of the filter. */
static void add_lines(const struct plan *p, const struct entries *e, struct lines l)
{
    const int64_t each = line_vecs(p), pieces = div_up(each, WIDTH);
    int64_t t = 0;
    for (; each <= WIDTH / 3 && t + 3 <= p->taps; t += 3, l.b += 3 * l.b_line, l.c += 3 * l.c_line)
        add_three(e, l, each);
    for (; t < p->taps; t++, l.b += l.b_line, l.c += l.c_line)
        for (int64_t i = 0; i < pieces; i++) {
            const int64_t at = each * i / pieces;
            struct lines piece = l;
            piece.b += at * LANES;
            piece.c += at * LANES;
            add_one(e, piece, each * (i + 1) / pieces - at);
        }
}

/* ---- Dgrad: elements of a pixel of dy, SPAN outputs at a time ---- */

/* Lists the non-zero elements of n outputs of a pixel; their filters are `step` floats apart, from
 * `at` on. */
INLINE void list_pixel(const float *row, int64_t n, int64_t at, int64_t step, struct entries *e)
{
    e->n = 0;
    for (uint64_t left = nonzero_mask(row, n); left; left &= left - 1, e->n++) {
        const int k = __builtin_ctzll(left);
        e->at[e->n] = (int32_t)(at + k * step);
        e->v[e->n] = row[k];
    }
}

static void run_data(const struct work *w, int64_t image)
{
    const struct plan *p = w->p;
    const int64_t dy_step = y_step_of(p->s), cin = p->s->cin, filter = p->taps * p->line;
    const float *dy = w->g->filter.dy + image * p->high * p->wide * dy_step;
    int32_t at[SPAN];
    float v[SPAN];
    struct entries e = {.at = at, .v = v};
    clear(w->frame, frame_size(p, p->frame_high));
    for (int64_t o = 0; o < p->s->cout; o += SPAN)
        for (int64_t y = 0; y < p->high; y++)
            for (int64_t x = 0; x < p->wide; x++) {
                const float *row = dy + (y * p->wide + x) * dy_step + o;
                float *window = w->frame + (y * p->frame_wide + x) * p->stride * cin;
                list_pixel(row, min_i64(SPAN, p->s->cout - o), o * filter, filter, &e);
                if (e.n)
                    add_lines(p, &e, (struct lines){w->g->w, window, p->line, p->frame_wide * cin});
            }
}

/* Floats of a frame's line before the image, and inside it. */
struct inside {
    int64_t skip, wide;
};

static struct inside inside_of(const struct plan *p)
{
    const struct ew_conv_axis *x = &p->s->axis[2];
    const int64_t room = max_i64(p->frame_wide - x->pad, 0);
    return (struct inside){min_i64(x->pad, p->frame_wide) * p->s->cin,
                           min_i64(room, x->in) * p->s->cin};
}

static void finish_data(const struct work *w, int64_t image)
{
    const struct plan *p = w->p;
    const struct ew_conv_axis *y = &p->s->axis[1];
    const struct inside in = inside_of(p);
    const int64_t line = p->s->axis[2].in * (int64_t)p->s->cin;
    for (int64_t r = 0; r < y->in; r++) {
        const bool met = r + y->pad < p->frame_high;
        const int64_t at = (image * y->in + r) * line;
        const float *from = w->frame + (r + y->pad) * p->frame_wide * p->s->cin + in.skip;
        for (int64_t c = 0; c < line; c += LANES) {
            const int64_t n = line - c;
            vec v = met && c < in.wide ? load_n(from + c, min_i64(in.wide - c, LANES)) : (vec){0};
            if (w->g->add_dx)
                v += load_n(w->g->dx + at + c, n);
            if (w->g->mask)
                v = keep(load_n(w->g->filter.x + at + c, n) > 0, v);
            store_n(w->g->dx + at + c, v, n);
        }
    }
}

/* ---- Wgrad: elements of an output channel of dy, some rows of an image at a time ---- */

/* Copies the lines of x that `rows` rows of dy from `row` on read. */
static void fill_frame(const struct work *w, int64_t image, int64_t row, int64_t rows)
{
    const struct plan *p = w->p;
    const struct ew_conv_axis *y = &p->s->axis[1];
    const struct inside in = inside_of(p);
    const int64_t line = p->frame_wide * p->s->cin, high = (rows - 1) * p->stride + p->taps;
    float *to = w->frame;
    for (int64_t r = 0; r < high; r++, to += line) {
        const int64_t from = row * p->stride + r - y->pad;
        const int64_t pixels = (image * y->in + from) * p->s->axis[2].in;
        if (from < 0 || from >= y->in) {
            clear(to, line);
            continue;
        }
        clear(to, in.skip);
        copy(to + in.skip, w->g->filter.x + pixels * p->s->cin, in.wide);
        clear(to + in.skip + in.wide, line - in.skip - in.wide);
    }
    clear(to, LANES); /* read with the last line, but not used */
}

static void list_rows(const struct work *w, int64_t image, int64_t row, int64_t rows)
{
    const struct plan *p = w->p;
    const int64_t dy_step = y_step_of(p->s), most = p->rows * p->wide;
    const float *dy = w->g->filter.dy + (image * p->high + row) * p->wide * dy_step;
    memset(w->count, 0, (size_t)p->s->cout * sizeof(*w->count));
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < p->wide; x++, dy += dy_step) {
            const int64_t at = (y * p->frame_wide + x) * p->stride * p->s->cin;
            for (int64_t o = 0; o < p->s->cout; o += SPAN) {
                uint64_t left = nonzero_mask(dy + o, min_i64(SPAN, p->s->cout - o));
                for (; left; left &= left - 1) {
                    const int64_t k = o + __builtin_ctzll(left), to = k * most + w->count[k]++;
                    w->at[to] = (int32_t)at;
                    w->v[to] = dy[k];
                }
            }
        }
}

static void run_filter(const struct work *w, int64_t image)
{
    const struct plan *p = w->p;
    const int64_t most = p->rows * p->wide, each = line_vecs(p) * LANES;
    for (int64_t row = 0; row < p->high; row += p->rows) {
        const int64_t rows = min_i64(p->rows, p->high - row);
        fill_frame(w, image, row, rows);
        list_rows(w, image, row, rows);
        for (int64_t o = 0; o < p->s->cout; o++) {
            const struct entries e = {w->count[o], w->at + o * most, w->v + o * most};
            float sum = 0;
            for (int64_t i = 0; i < e.n; i++)
                sum += e.v[i];
            w->bias[o] += sum;
            if (e.n)
                add_lines(p, &e,
                          (struct lines){w->frame, w->sums + o * p->taps * each,
                                         p->frame_wide * p->s->cin, each});
        }
    }
}

/* ---- The kernel ---- */

void EW_K(scatter_grad_run)(const struct ew_unpacked_grads *g, int64_t begin, int64_t end,
                            void *scratch)
{
    struct plan p;
    init(&p, &g->filter.shape);
    struct work w = {.p = &p, .g = g, .frame = scratch};
    w.v = w.frame + FRAME + LANES;
    w.at = (int32_t *)(void *)(w.v + listed(&p));
    w.count = w.at + listed(&p);
    for (int64_t part = begin; part < end; part++) {
        w.sums = g->shared + part * part_size(&p);
        w.bias = w.sums + p.s->cout * p.vecs * LANES;
        if (!g->no_filter)
            clear(w.sums, part_size(&p));
        for (int64_t i = p.s->batch * part / PARTS; i < p.s->batch * (part + 1) / PARTS; i++) {
            if (g->dx) {
                run_data(&w, i);
                finish_data(&w, i);
            }
            if (!g->no_filter)
                run_filter(&w, i);
        }
    }
}

/* Reduces outputs [begin, end) of dw, and their bias gradients. */
void EW_K(scatter_grad_sum)(const struct ew_unpacked_grads *g, int64_t begin, int64_t end)
{
    struct plan p;
    init(&p, &g->filter.shape);
    const int64_t each = line_vecs(&p) * LANES, filter = p.taps * p.line;
    float all[FILTER + LANES];
    for (int64_t o = begin; o < end; o++) {
        for (int64_t t = 0; t < p.taps; t++)
            for (int64_t v = 0; v < each; v += LANES) {
                const float *from = g->shared + (o * p.taps + t) * each + v;
                vec sum = load(from);
                for (int part = 1; part < PARTS; part++)
                    sum += load(from + part * part_size(&p));
                store(all + t * p.line + v, sum);
            }
        filter_sum(&g->filter, all, 1, 0, o * filter, filter);
        const float *bias = g->shared + p.s->cout * p.vecs * LANES + o;
        float sum = g->filter.db && g->filter.add_db ? g->filter.db[o] : 0;
        for (int part = 0; part < PARTS; part++)
            sum += bias[part * part_size(&p)];
        if (g->filter.db)
            g->filter.db[o] = sum;
    }
}
