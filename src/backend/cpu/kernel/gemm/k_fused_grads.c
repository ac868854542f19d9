/* SPDX-License-Identifier: Apache-2.0 */
/* Fused dgrad + wgrad of a 1x1 convolution, in one pass over its pixels.
 *
 * A block is a few hundred rows of dy and x that stay in L2: dx = dy w is computed first, then dw
 * += dy^T x.  With a batch norm after the convolution, the block of dy is computed from that norm's
 * dy and x, and not stored elsewhere.  With one before it, the norm is applied to the block of x,
 * and the sums of its backward are accumulated while dx is in the cache.  A tile is a fixed share
 * of the blocks, with its own partial sums. */
#include <math.h>

#include "backend/cpu/kernel/gemm/micro.h"
#include "backend/cpu/kernel/gemm/wgrad_sum.h"
#include "backend/cpu/kernel/norm/norm_rows.h"

#define TILES        16
#define BLOCK        8          /* most panels of MR pixels in a block */
#define BLOCK_FLOATS (48 << 10) /* floats of a block's dy and x */
/* Most floats of the filter: it and its gradient stay in L2 beside a block. */
#define FILTER_MOST  (76 << 10)
#define PIXELS_LEAST (TILES * MR) /* with fewer pixels two passes are as fast */

static int64_t rows_of(const struct ew_conv_shape *s)
{
    return (int64_t)s->batch * s->axis[0].out * s->axis[1].out * s->axis[2].out;
}

/* Pixels of a block. */
static int64_t block_of(const struct ew_conv_shape *s)
{
    const int64_t panels = BLOCK_FLOATS / (s->cin + s->cout) / MR;
    return max_i64(min_i64(panels, BLOCK), 1) * MR;
}

bool EW_K(fused_grads_fits)(const struct ew_conv_shape *s)
{
    bool flat = s->groups == 1 && s->cin % 1024 != 0 && y_step_of(s) % 1024 != 0;
    for (int i = 0; i < 3; i++) {
        const struct ew_conv_axis *a = &s->axis[i];
        flat = flat && a->taps == 1 && a->stride == 1 && a->pad == 0 && a->in == a->out;
    }
    return flat && (int64_t)s->cin * s->cout <= FILTER_MOST && rows_of(s) >= PIXELS_LEAST;
}

int64_t EW_K(fused_grads_tiles)(const struct ew_conv_shape *s)
{
    return min_i64(TILES, div_up(rows_of(s), block_of(s)));
}

/* Filter gradients [tile][cout][cin], then bias gradients [tile][cout]. */
size_t EW_K(fused_grads_partial)(const struct ew_conv_shape *s)
{
    return (size_t)(EW_K(fused_grads_tiles)(s) * s->cout * (s->cin + 1));
}

/* A block of dy, a block of x, and slack for the last vector. */
size_t EW_K(fused_grads_scratch)(const struct ew_conv_shape *s)
{
    return (size_t)(block_of(s) * (s->cin + s->cout) + 2 * NR) * sizeof(float);
}

/* Memory to prefetch into L2 while the micro-kernel multiplies. */
struct prefetch {
    const float *at;
    int64_t lines;
};

/* A block of pixels. */
struct block {
    const struct ew_fused_grads *j;
    int64_t row, count;
    const float *x, *dy;
    int64_t dy_step; /* floats between its pixels */
    int64_t next;    /* pixels of the next block of this tile */
    float *sums;     /* of the filter gradient */
    float *bias;     /* of the bias gradient; NULL: not wanted */
    bool started;    /* sums and bias are initialised */
    struct prefetch prefetch[4];
    int n_prefetch;
};

static void prefetch_add(struct block *b, const float *p, int64_t floats)
{
    b->prefetch[b->n_prefetch++] = (struct prefetch){p, div_up(floats, LINE)};
}

/* The next `lines` cache lines to prefetch, one for each step of k; NULL: none are left. */
static const float *prefetch_take(struct block *b, int64_t lines)
{
    while (b->n_prefetch > 0 && b->prefetch[b->n_prefetch - 1].lines <= 0)
        b->n_prefetch--;
    if (b->n_prefetch == 0)
        return NULL;
    struct prefetch *s = &b->prefetch[b->n_prefetch - 1];
    const float *p = s->at;
    s->at += lines * LINE;
    s->lines -= lines;
    return p;
}

/* Plans the prefetch of this block's x and the next block's operands: hardware prefetchers lose
 * these streams between blocks. */
static void plan_soon(struct block *b, int64_t next)
{
    const struct ew_fused_grads *j = b->j;
    const int64_t in = j->filter.shape.cin, out = j->filter.shape.cout, row = b->row + b->count;
    b->n_prefetch = 0;
    b->next = next;
    if (next > 0 && j->output_norm) {
        prefetch_add(b, j->output_norm->dy + row * out, next * out);
        prefetch_add(b, j->output_norm->x + row * out, next * out);
    } else if (next > 0 && b->dy_step == out) {
        prefetch_add(b, j->filter.dy + row * out, next * out);
    }
    if (next > 0 && j->filter.norm)
        prefetch_add(b, j->filter.norm->x + row * in, next * in);
    else if (next > 0 && j->mask)
        prefetch_add(b, j->filter.x + row * in, next * in);
    if (!j->filter.norm && !j->mask)
        prefetch_add(b, b->x, b->count * in);
}

/* Prefetches strided pixels of dy: n of the next block, from p on. */
static void fetch_apart(const struct block *b, int64_t p, int64_t n)
{
    const int64_t out = b->j->filter.shape.cout;
    const float *dy = b->j->filter.dy + (b->row + b->count + p) * b->dy_step;
    for (int64_t r = 0; r < min_i64(n, b->next - p); r++, dy += b->dy_step)
        for (int64_t o = 0; o < out; o += LINE)
            __builtin_prefetch(dy + o, 0, 2);
}

/* Masks dx, n channels of the panel from pixel p on, by x > 0. */
static void mask_panel(const struct block *b, float *dx, int64_t p, int rows, int64_t n)
{
    const int64_t in = b->j->filter.shape.cin;
    const float *x = b->x + p * in + (dx - (b->j->dx + (b->row + p) * in));
    for (int r = 0; r < rows; r++, dx += in, x += in)
        for (int64_t c = 0; c < n; c += LANES)
            store_n(dx + c, keep(load_n(x + c, n - c) > 0.0f, load_n(dx + c, n - c)), n - c);
}

/* Prefetches the rows that the next panel writes, which hardware prefetchers fetch too late. */
static void fetch_panel(const float *p, int64_t n)
{
    for (int64_t i = 0; i < n; i += LINE)
        __builtin_prefetch(p + i, 0, 2);
}

static void run_data(struct block *b)
{
    const struct ew_conv_shape *s = &b->j->filter.shape;
    const int64_t in = s->cin, out = s->cout;
    int64_t row[MR];
    for (int r = 0; r < MR; r++)
        row[r] = r * in;
    for (int64_t p = 0; p < b->count; p += MR) {
        const int rows = (int)min_i64(MR, b->count - p);
        float *dx = b->j->dx + (b->row + p) * in;
        if (p + rows < b->count)
            fetch_panel(dx + rows * in, min_i64(MR, b->count - p - rows) * in);
        if (b->dy_step != out)
            fetch_apart(b, p, MR);
        for (int64_t block = 0; block < block_count(in); block++) {
            const int64_t i = block * NR;
            const struct micro m = {.a = b->dy + p * b->dy_step,
                                    .w = b->j->w + i * out,
                                    .prefetch = prefetch_take(b, out),
                                    .row_step = b->dy_step,
                                    .lines = 1,
                                    .kc = out,
                                    .from = b->j->add_dx ? dx + i : NULL,
                                    .c = dx + i,
                                    .row = row,
                                    .width = block_width(in, block),
                                    .lo = -INFINITY,
                                    .hi = INFINITY};
            EW_K(micro_direct)(&m, rows);
            if (b->j->mask)
                mask_panel(b, dx + i, p, rows, m.width);
        }
    }
}

static void add_bias(const struct block *b)
{
    const int64_t out = b->j->filter.shape.cout;
    for (int64_t o = 0; o < out; o += LANES) {
        vec s[4] = {{0}};
        for (int64_t p = 0; p < b->count; p++)
            s[p % 4] += load_n(b->dy + p * b->dy_step + o, out - o);
        const vec old = b->started ? load_n(b->bias + o, out - o) : (vec){0};
        store_n(b->bias + o, old + ((s[0] + s[1]) + (s[2] + s[3])), out - o);
    }
}

static void run_filter(struct block *b)
{
    const struct ew_conv_shape *s = &b->j->filter.shape;
    const int64_t in = s->cin, out = s->cout;
    int64_t row[MR];
    for (int r = 0; r < MR; r++)
        row[r] = r * in;
    for (int64_t i = 0; i < in; i += NR)
        for (int64_t o = 0; o < out; o += MR) {
            float *c = b->sums + o * in + i;
            const struct micro m = {.a = b->dy + o,
                                    .w = b->x + i,
                                    .prefetch = prefetch_take(b, b->count),
                                    .row_step = b->dy_step,
                                    .line_step = in,
                                    .kc = b->count,
                                    .from = b->started ? c : NULL,
                                    .c = c,
                                    .row = row,
                                    .width = min_i64(NR, in - i),
                                    .lo = -INFINITY,
                                    .hi = INFINITY};
            EW_K(micro_outer_direct)(&m, (int)min_i64(MR, out - o));
        }
}

/* Sets the block's operands: in place, or computed by the norms into scratch. */
static void feed(struct block *b, float *scratch)
{
    const struct ew_conv_wgrad *f = &b->j->filter;
    const int64_t in = f->shape.cin, out = f->shape.cout, rows = rows_of(&f->shape);
    float *x = scratch + block_of(&f->shape) * out + NR;
    b->dy_step = b->j->output_norm ? out : y_step_of(&f->shape);
    b->dy = b->j->output_norm ? scratch : f->dy + b->row * b->dy_step;
    if (b->j->output_norm)
        norm_back_rows(b->j->output_norm, b->row, b->count, scratch, 0);
    b->x = x;
    if (f->norm)
        norm_rows(f->norm, b->row, b->count, x, 0);
    else if ((rows - b->row - b->count) * in < NR) /* whole vectors would read beyond x */
        copy(x, f->x + b->row * in, b->count * in);
    else
        b->x = f->x + b->row * in;
}

static void run_tile(const struct ew_fused_grads *j, int64_t tile, float *scratch)
{
    const struct ew_conv_shape *s = &j->filter.shape;
    const int64_t size = block_of(s), rows = rows_of(s), blocks = div_up(rows, size);
    const int64_t tiles = EW_K(fused_grads_tiles)(s);
    struct block b = {.j = j, .sums = j->filter.partial + tile * s->cin * s->cout};
    if (j->filter.db)
        b.bias = j->filter.partial + tiles * s->cin * s->cout + tile * s->cout;
    float *sums = j->norm_sums ? j->norm_sums + tile * 2 * s->cin : NULL;
    struct ew_batch_norm norm = {0};
    if (sums) {
        norm = *j->filter.norm;
        norm.dy = j->dx;
        clear(sums, 2 * s->cin);
    }
    const int64_t last = blocks * (tile + 1) / tiles;
    for (int64_t i = blocks * tile / tiles; i < last; i++) {
        b.row = i * size;
        b.count = min_i64(size, rows - b.row);
        feed(&b, scratch);
        plan_soon(&b, i + 1 < last ? min_i64(size, rows - b.row - b.count) : 0);
        if (j->dx)
            run_data(&b);
        if (!j->no_filter)
            run_filter(&b);
        if (b.bias)
            add_bias(&b);
        if (sums)
            EW_KF(batch_back_rows)(&norm, b.row, b.row + b.count, sums);
        b.started = true;
    }
}

void EW_K(fused_grads_run)(const struct ew_fused_grads *j, int64_t begin, int64_t end,
                           void *scratch)
{
    for (int64_t i = begin; i < end; i++)
        run_tile(j, i, scratch);
}

int64_t EW_K(fused_grads_sum_tiles)(const struct ew_conv_shape *s)
{
    return div_up((int64_t)s->cin * s->cout, FILTER_SUM);
}

void EW_K(fused_grads_sum)(const struct ew_fused_grads *j, int64_t begin, int64_t end)
{
    const struct ew_conv_wgrad *f = &j->filter;
    const int64_t size = (int64_t)f->shape.cin * f->shape.cout;
    const int64_t at = begin * FILTER_SUM, last = min_i64(end * FILTER_SUM, size);
    const int64_t tiles = EW_K(fused_grads_tiles)(&f->shape);
    filter_sum(f, f->partial + at, tiles, size, at, last - at);
    for (int64_t o = 0; f->db && begin == 0 && o < f->shape.cout; o++) {
        float sum = f->add_db ? f->db[o] : 0;
        for (int64_t i = 0; i < tiles; i++)
            sum += f->partial[tiles * size + i * f->shape.cout + o];
        f->db[o] = sum;
    }
}
