/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of grouped convolution.  Dgrad with stride 1 is the forward kernel on dy with the
 * rotated filter; with larger strides implicit GEMM is faster.  In wgrad lanes are output channels
 * again, and the accumulators of 3 taps and 4 inputs stay in registers over the pixels of a
 * tile. */
#include "backend/cpu/kernel/grouped/grouped.h"

/* ---- Dgrad ---- */

/* The convolution of dy that computes dx. */
static struct ew_conv_shape dgrad_shape(const struct ew_conv_shape *s)
{
    struct ew_conv_shape r = *s;
    r.cin = s->cout;
    r.cout = s->cin;
    for (int i = 0; i < 3; i++) {
        const struct ew_conv_axis *a = &s->axis[i];
        r.axis[i].in = a->out;
        r.axis[i].out = a->in;
        r.axis[i].pad = (a->taps - 1) * a->dilation - a->pad;
    }
    return r;
}

bool EW_K(grouped_dgrad_fits)(const struct ew_conv_shape *s)
{
    const struct ew_conv_shape r = dgrad_shape(s);
    return EW_K(grouped_fits)(s) && EW_K(grouped_fits)(&r) && s->axis[0].stride == 1 &&
           s->axis[1].stride == 1 && s->axis[2].stride == 1;
}

size_t EW_K(grouped_dgrad_pack_size)(const struct ew_conv_shape *s)
{
    const struct ew_conv_shape r = dgrad_shape(s);
    return EW_K(grouped_pack_size)(&r);
}

void EW_K(grouped_dgrad_pack)(const struct ew_conv_shape *s, const float *w, float *packed)
{
    const struct ew_conv_shape r = dgrad_shape(s);
    EW_K(grouped_pack_any)(&r, w, true, packed);
}

int64_t EW_K(grouped_dgrad_tiles)(const struct ew_conv_shape *s)
{
    const struct ew_conv_shape r = dgrad_shape(s);
    return EW_K(grouped_tiles)(&r);
}

size_t EW_K(grouped_dgrad_scratch)(const struct ew_conv_shape *s)
{
    const struct ew_conv_shape r = dgrad_shape(s);
    return EW_K(grouped_scratch)(&r);
}

void EW_K(grouped_dgrad_run)(const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)
{
    struct ew_conv r = *c;
    r.shape = dgrad_shape(&c->shape);
    EW_K(grouped_run)(&r, begin, end, scratch);
}

/* ---- Wgrad ---- */

#define WORK   16 /* wanted tiles: with fewer blocks, pixels are split too */
#define INPUTS 4  /* inputs at once */

/* Spatial tiles, and the splits of a block's sums over them. */
static int64_t spatial_tiles(const struct grouped *g)
{
    return g->tiles / g->blocks;
}

static int64_t splits(const struct grouped *g)
{
    return max_i64(min_i64(WORK / g->blocks, spatial_tiles(g)), 1);
}

size_t EW_K(grouped_wgrad_partial)(const struct ew_conv_shape *s)
{
    struct grouped g;
    EW_K(grouped_init)(&g, s);
    return (size_t)(splits(&g) * g.blocks * grouped_weights(&g));
}

int64_t EW_K(grouped_wgrad_tiles)(const struct ew_conv_shape *s)
{
    struct grouped g;
    EW_K(grouped_init)(&g, s);
    return splits(&g) * g.blocks;
}

size_t EW_K(grouped_wgrad_scratch)(const struct ew_conv_shape *s)
{
    return EW_K(grouped_scratch)(s);
}

/* The sums of a few taps and inputs over the pixels of a tile. */
struct sums {
    const struct grouped *g;
    const struct tile *tile;
    const float *line_buffer; /* at the first output's line, first tap and first input */
    const float *dy;          /* at the first output's channels */
    int64_t n;                /* channels, at most LANES */
    float *to;                /* [input][tap][vectors][LANES] */
    vint index;
};

INLINE void sums_fixed(const struct sums *s, const int taps, const int inputs, const bool mix)
{
    const struct grouped *g = s->g;
    const struct ew_conv_axis *a = g->s->axis;
    const int64_t next = g->vectors * LANES, input = a[2].taps * next;
    vec sum[3][INPUTS];
    UNROLL
    for (int u = 0; u < taps; u++)
        UNROLL
    for (int i = 0; i < inputs; i++)
        sum[u][i] = load(s->to + i * input + u * next);
    for (int64_t r = 0; r < s->tile->rows; r++) {
        const float *line = s->line_buffer + r * a[1].stride * g->line;
        const float *dy = s->dy + r * a[2].out * g->s->cout;
        for (int64_t o = 0; o < s->tile->pixels; o++) {
            const vec d = load_n(dy + o * g->s->cout, s->n);
            UNROLL
            for (int u = 0; u < taps; u++) {
                const float *x = line + (o * a[2].stride + u * a[2].dilation) * LANES;
                UNROLL
                for (int i = 0; i < inputs; i++)
                    sum[u][i] += d * (mix ? permute(load(x), s->index + i) : splat(x[i]));
            }
        }
    }
    UNROLL
    for (int u = 0; u < taps; u++)
        UNROLL
    for (int i = 0; i < inputs; i++)
        store(s->to + i * input + u * next, sum[u][i]);
}

#define SUMS(taps, inputs)                                                                         \
    static void sums_##taps##_##inputs(const struct sums *s)                                       \
    {                                                                                              \
        if (s->g->span > 1)                                                                        \
            sums_fixed(s, taps, inputs, true);                                                     \
        else                                                                                       \
            sums_fixed(s, taps, inputs, false);                                                    \
    }

SUMS(3, 4)
SUMS(3, 1)
SUMS(1, 4)
SUMS(1, 1)

/* All inputs and taps of one line of the filter, for one vector of outputs; sets s's line_buffer
 * and to. */
static void sum_line(const struct sums *s, const float *line_buffer, float *to)
{
    const struct grouped *g = s->g;
    const struct ew_conv_axis *a = &g->s->axis[2];
    const int taps = a->taps % 3 == 0 ? 3 : 1;
    const int64_t next = g->vectors * LANES;
    for (int64_t i = 0; i < g->cg;) {
        const bool four = i + INPUTS <= g->cg;
        struct sums part = *s;
        part.index = s->index + (int32_t)i;
        for (int64_t u = 0; u < a->taps; u += taps) {
            const float *from = line_buffer + u * a->dilation * LANES;
            part.line_buffer = g->span > 1 ? from : from + i / LANES * g->chunk + i % LANES;
            part.to = to + (i * a->taps + u) * next;
            if (taps == 3)
                (four ? sums_3_4 : sums_3_1)(&part);
            else
                (four ? sums_1_4 : sums_1_1)(&part);
        }
        i += four ? INPUTS : 1;
    }
}

static void sum_tile(const struct grouped *g, const struct tile *t, const float *dy,
                     const float *line_buffer, float *to)
{
    const struct ew_conv_axis *a = g->s->axis;
    const int64_t row =
        ((t->image * a[0].out + t->at[0]) * a[1].out + t->at[1]) * a[2].out + t->at[2];
    struct sums s = {.g = g, .tile = t, .index = grouped_index(g)};
    for (int64_t v = 0; v * LANES < t->block.n_out; v++) {
        s.n = t->block.n_out - v * LANES;
        s.dy = dy + row * g->s->cout + t->block.out + v * LANES;
        for (int64_t l = 0; l < a[0].taps * a[1].taps; l++)
            sum_line(&s,
                     line_buffer + l / a[1].taps * g->plane +
                         l % a[1].taps * a[1].dilation * g->line,
                     to + (l * g->cg * a[2].taps * g->vectors + v) * LANES);
    }
}

void EW_K(grouped_wgrad_run)(const struct ew_conv_wgrad *f, int64_t begin, int64_t end,
                             void *scratch)
{
    struct grouped g;
    EW_K(grouped_init)(&g, &f->shape);
    const int64_t parts = splits(&g), all = spatial_tiles(&g), weights = grouped_weights(&g);
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t part = tile / g.blocks, block = tile % g.blocks;
        float *to = f->partial + tile * weights;
        clear(to, weights);
        for (int64_t p = all * part / parts; p < all * (part + 1) / parts; p++) {
            struct tile t;
            EW_K(grouped_tile)(&g, p * g.blocks + block, &t);
            EW_K(grouped_fill_lines)(&g, &t, f->x, scratch);
            sum_tile(&g, &t, f->dy, scratch, to);
        }
    }
}

/* A tile is a block. */
int64_t EW_K(grouped_wgrad_sum_tiles)(const struct ew_conv_shape *s)
{
    struct grouped g;
    EW_K(grouped_init)(&g, s);
    return g.blocks;
}

void EW_K(grouped_wgrad_sum)(const struct ew_conv_wgrad *f, int64_t begin, int64_t end)
{
    const struct ew_conv_shape *s = &f->shape;
    struct grouped g;
    EW_K(grouped_init)(&g, s);
    const int64_t parts = splits(&g), weights = grouped_weights(&g), taps = s->axis[2].taps;
    const int64_t lines = (int64_t)s->axis[0].taps * s->axis[1].taps, wide = g.vectors * LANES;
    for (int64_t b = begin; b < end; b++) {
        const struct block k = grouped_block(&g, b);
        for (int64_t i = 0; i < lines * g.cg * taps; i++) {
            const int64_t line = i / taps / g.cg, c = i / taps % g.cg, u = i % taps;
            for (int64_t l = 0; l < k.n_out; l++) {
                float *to = f->dw + ((k.out + l) * lines * taps + line * taps + u) * g.cg + c;
                float sum = 0;
                for (int64_t p = 0; p < parts; p++)
                    sum += f->partial[(p * g.blocks + b) * weights + i * wide + l];
                *to = f->add ? *to + sum : sum;
            }
        }
    }
}
