/* SPDX-License-Identifier: Apache-2.0 */
/* One convolution pass over the CPU's kernels. */
#include "backend/cpu/step/conv_pass.h"
#include "backend/cpu/cpu_backend.h"

#include "backend/cpu/parallel.h"

/* A filter of one frame treats clips [N, T, H, W, C] as N T images, so that 2-D methods, above all
 * Winograd, apply. */
static void fold_time(struct ew_conv_shape *s)
{
    struct ew_conv_axis *t = &s->axis[0];
    if (t->in == 1 || t->taps != 1 || t->stride != 1 || t->pad != 0 || t->out != t->in)
        return;
    s->batch *= t->in;
    *t = (struct ew_conv_axis){.in = 1, .out = 1, .taps = 1, .stride = 1, .dilation = 1};
}

void ew_conv_shape_of(const struct ew_conv_sizes *s, struct ew_conv_shape *out)
{
    *out = (struct ew_conv_shape){.batch = (int32_t)s->w.batch,
                                  .groups = (int32_t)s->groups,
                                  .cin = (int32_t)s->w.channels,
                                  .cout = (int32_t)s->filters};
    for (int i = 0; i < EW_WINDOW_DIMS; i++)
        out->axis[i] = (struct ew_conv_axis){.in = (int32_t)s->w.in[i],
                                             .out = (int32_t)s->w.out[i],
                                             .taps = (int32_t)s->w.kernel[i],
                                             .stride = (int32_t)s->w.stride[i],
                                             .dilation = (int32_t)s->w.dilation[i],
                                             .pad = (int32_t)s->w.pad[i]};
    fold_time(out);
}

struct ew_conv_shape ew_conv_dgrad_shape(const struct ew_conv_shape *s)
{
    struct ew_conv_shape t = *s;
    t.cin = s->cout;
    t.cout = s->cin;
    t.x_step = s->y_step;
    t.y_step = s->x_step;
    for (int i = 0; i < 3; i++) {
        t.axis[i].in = s->axis[i].out;
        t.axis[i].out = s->axis[i].in;
        t.axis[i].pad = s->axis[i].taps - 1 - s->axis[i].pad;
    }
    return t;
}

bool ew_conv_fits(const struct ew_kernels *k, enum ew_conv_method m, const struct ew_conv_shape *s)
{
    switch (m) {
    case EW_CONV_WINOGRAD:
        return k->winograd_fits(s);
    case EW_CONV_WINOGRAD_DGRAD:
        return k->winograd_fits(s) && s->axis[0].stride == 1 && s->axis[1].stride == 1;
    case EW_CONV_DEPTHWISE:
    case EW_CONV_DEPTHWISE_DGRAD:
        return k->depthwise_fits(s);
    case EW_CONV_GROUPED:
        return k->grouped_fits(s);
    case EW_CONV_GROUPED_DGRAD:
        return k->grouped_dgrad_fits(s);
    case EW_CONV_BATCH_LANES:
        return k->batch_lanes_fits(s);
    case EW_CONV_PIXEL_LANES:
        return k->pixel_lanes_fits(s);
    case EW_CONV_INPUT_LANES:
        return k->input_lanes_fits(s);
    case EW_CONV_BATCH_LANES_DGRAD:
        return k->batch_lanes_dgrad_fits(s);
    case EW_CONV_GEMM:
    case EW_CONV_DGRAD:
        break;
    }
    return true;
}

/* One function of the table by method. */
#define BY_METHOD(k, what)                                                                         \
    {                                                                                              \
        [EW_CONV_GEMM] = (k)->conv_##what, [EW_CONV_WINOGRAD] = (k)->winograd_##what,              \
        [EW_CONV_DEPTHWISE] = (k)->depthwise_##what, [EW_CONV_GROUPED] = (k)->grouped_##what,      \
        [EW_CONV_DGRAD] = (k)->conv_dgrad_##what, [EW_CONV_WINOGRAD_DGRAD] = (k)->winograd_##what, \
        [EW_CONV_DEPTHWISE_DGRAD] = (k)->depthwise_dgrad_##what,                                   \
        [EW_CONV_GROUPED_DGRAD] = (k)->grouped_dgrad_##what,                                       \
        [EW_CONV_BATCH_LANES] = (k)->batch_lanes_##what,                                           \
        [EW_CONV_PIXEL_LANES] = (k)->pixel_lanes_##what,                                           \
        [EW_CONV_INPUT_LANES] = (k)->input_lanes_##what,                                           \
        [EW_CONV_BATCH_LANES_DGRAD] = (k)->batch_lanes_##what                                      \
    }

size_t ew_conv_packed_bytes(const struct ew_kernels *k, enum ew_conv_method m,
                            const struct ew_conv_shape *s)
{
    size_t (*const size[])(const struct ew_conv_shape *) = {
        [EW_CONV_GEMM] = k->conv_pack_size,
        [EW_CONV_WINOGRAD] = k->winograd_pack_size,
        [EW_CONV_DEPTHWISE] = k->depthwise_pack_size,
        [EW_CONV_GROUPED] = k->grouped_pack_size,
        [EW_CONV_DGRAD] = k->conv_dgrad_pack_size,
        [EW_CONV_WINOGRAD_DGRAD] = k->winograd_pack_size,
        [EW_CONV_DEPTHWISE_DGRAD] = k->depthwise_pack_size,
        [EW_CONV_GROUPED_DGRAD] = k->grouped_dgrad_pack_size,
        [EW_CONV_BATCH_LANES] = k->batch_lanes_pack_size,
        [EW_CONV_PIXEL_LANES] = k->pixel_lanes_pack_size,
        [EW_CONV_INPUT_LANES] = k->input_lanes_pack_size,
        [EW_CONV_BATCH_LANES_DGRAD] = k->batch_lanes_pack_size};
    return size[m](s) * sizeof(float);
}

size_t ew_conv_scratch_bytes(const struct ew_kernels *k, enum ew_conv_method m,
                             const struct ew_conv_shape *s)
{
    size_t (*const size[])(const struct ew_conv_shape *) = BY_METHOD(k, scratch);
    return size[m](s);
}

static int64_t tiles_of(const struct ew_kernels *k, enum ew_conv_method m,
                        const struct ew_conv_shape *s)
{
    int64_t (*const tiles[])(const struct ew_conv_shape *) = BY_METHOD(k, tiles);
    return tiles[m](s);
}

struct packing {
    const struct ew_kernels *k;
    const struct ew_conv_pass *p;
    const float *w;
    int64_t first; /* tile */
};

static void pack_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct packing *a = ctx;
    begin += a->first;
    end += a->first;
    const struct ew_conv_shape *s = &a->p->conv.shape;
    float *packed = a->p->packed;
    switch (a->p->method) {
    case EW_CONV_GEMM:
        a->k->conv_pack(s, a->w, packed, begin, end);
        break;
    case EW_CONV_WINOGRAD:
    case EW_CONV_WINOGRAD_DGRAD:
        a->k->winograd_pack(s, a->w, a->p->method == EW_CONV_WINOGRAD_DGRAD, packed, begin, end);
        break;
    case EW_CONV_DGRAD:
        a->k->conv_dgrad_pack(s, a->w, packed, begin, end);
        break;
    case EW_CONV_DEPTHWISE:
        a->k->depthwise_pack(s, a->w, packed);
        break;
    case EW_CONV_GROUPED:
        a->k->grouped_pack(s, a->w, packed);
        break;
    case EW_CONV_DEPTHWISE_DGRAD:
        a->k->depthwise_dgrad_pack(s, a->w, packed);
        break;
    case EW_CONV_GROUPED_DGRAD:
        a->k->grouped_dgrad_pack(s, a->w, packed);
        break;
    case EW_CONV_BATCH_LANES:
        a->k->batch_lanes_pack(s, a->w, packed);
        break;
    case EW_CONV_PIXEL_LANES:
        a->k->pixel_lanes_pack(s, a->w, packed);
        break;
    case EW_CONV_INPUT_LANES:
        a->k->input_lanes_pack(s, a->w, packed);
        break;
    case EW_CONV_BATCH_LANES_DGRAD:
        a->k->batch_lanes_dgrad_pack(s, a->w, packed);
        break;
    }
}

static int64_t pack_tile_count(const struct ew_kernels *k, const struct ew_conv_pass *p)
{
    const struct ew_conv_shape *s = &p->conv.shape;
    switch (p->method) {
    case EW_CONV_GEMM:
        return k->conv_pack_tiles(s);
    case EW_CONV_WINOGRAD:
    case EW_CONV_WINOGRAD_DGRAD:
        return k->winograd_pack_tiles(s);
    case EW_CONV_DGRAD:
        return k->conv_dgrad_pack_tiles(s);
    case EW_CONV_DEPTHWISE:
    case EW_CONV_GROUPED:
    case EW_CONV_DEPTHWISE_DGRAD:
    case EW_CONV_GROUPED_DGRAD:
    case EW_CONV_BATCH_LANES:
    case EW_CONV_PIXEL_LANES:
    case EW_CONV_INPUT_LANES:
    case EW_CONV_BATCH_LANES_DGRAD:
        break;
    }
    return 1; /* small: packed by one thread */
}

#define PACK_ALONE (64 << 10) /* bytes of packed filters below which one thread is faster */

void ew_conv_pack(const struct ew_backend *be, struct ew_conv_pass *p, const float *w)
{
    if (p->conv.shape.unpacked) {
        p->conv.w = w;
        p->conv.flip = p->method == EW_CONV_WINOGRAD_DGRAD;
        return;
    }
    const bool small =
        ew_conv_packed_bytes(ew_cpu(be)->isa, p->method, &p->conv.shape) < (size_t)PACK_ALONE;
    struct packing a = {ew_cpu(be)->isa, p, w, 0};
    ew_pool_run(small ? NULL : ew_cpu(be)->pool, pack_tile_count(ew_cpu(be)->isa, p), pack_tiles,
                &a);
}

#define PIECE_BYTES (1 << 20)
/* Upper bound of the output channels of a packing tile on all instruction sets. */
#define TILE_ROWS 64

/* Packing tiles are blocks of output channels, which are contiguous in the filter. */
bool ew_conv_packs_pieces(enum ew_conv_method m, const struct ew_conv_shape *s)
{
    return (m == EW_CONV_GEMM || m == EW_CONV_WINOGRAD) && s->groups == 1;
}

size_t ew_conv_pack_piece(const struct ew_backend *be, struct ew_conv_pass *p, const float *w,
                          int64_t *next)
{
    const struct ew_conv_shape *s = &p->conv.shape;
    const struct ew_conv_axis *a = s->axis;
    const int64_t row = (int64_t)a[0].taps * a[1].taps * a[2].taps * s->cin * (int64_t)sizeof(*w);
    const int64_t tiles = pack_tile_count(ew_cpu(be)->isa, p);
    const int64_t step = ew_max_i64(PIECE_BYTES / ew_max_i64(row, 1) * tiles / s->cout, 1);
    struct packing part = {ew_cpu(be)->isa, p, w, *next};
    const int64_t end = ew_min_i64(*next + step, tiles);
    ew_pool_run(ew_cpu(be)->pool, end - *next, pack_tiles, &part);
    *next = end < tiles ? end : -1;
    const int64_t rows = end < tiles ? s->cout * end / tiles - TILE_ROWS : s->cout;
    return (size_t)(ew_max_i64(rows, 0) * row);
}

bool ew_conv_stats_split(const struct ew_kernels *k, enum ew_conv_method m,
                         const struct ew_conv_shape *s, struct ew_stats_split *out)
{
    *out = (struct ew_stats_split){0};
    if (m == EW_CONV_GEMM)
        *out = k->conv_stats_split(s);
    else if (m == EW_CONV_DEPTHWISE)
        *out = k->depthwise_stats_split(s);
    return out->size > 0;
}

struct shared {
    const struct ew_call *c;
    const struct ew_conv_pass *p;
    size_t scratch;
    int64_t tiles, together; /* all tiles, and tiles in one iteration of the loop */
};

static void run_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct shared *s = ctx;
    const struct ew_kernels *k = ew_cpu(s->c->be)->isa;
    void (*const run[])(const struct ew_conv *, int64_t, int64_t, void *) = BY_METHOD(k, run);
    run[s->p->method](&s->p->conv, begin * s->together, ew_min_i64(end * s->together, s->tiles),
                      ew_thread_scratch(s->c, s->scratch, worker));
}

void ew_conv_pass_run(const struct ew_call *c, struct ew_conv_pass *p)
{
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    if (!p->conv.shape.unpacked)
        p->conv.w = p->packed;
    struct ew_stats_split cut = {.tiles = 1};
    if (p->conv.stats)
        ew_conv_stats_split(k, p->method, &p->conv.shape, &cut);
    struct shared s = {c, p, ew_conv_scratch_bytes(k, p->method, &p->conv.shape),
                       tiles_of(k, p->method, &p->conv.shape), cut.tiles};
    if (p->conv.shape.unpacked && !p->conv.stats) { /* each range transforms its inputs again */
        const int64_t threads = ew_pool_threads(ew_cpu(c->be)->pool);
        s.together = ew_max_i64((s.tiles + threads - 1) / threads, 1);
    }
    ew_pool_run(ew_cpu(c->be)->pool, (s.tiles + s.together - 1) / s.together, run_tiles, &s);
}
