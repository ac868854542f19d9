/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise separable convolutions and inverted residuals, a band of rows at a time: the wide
 * values between the convolutions stay in L2.  The kernels are those of single convolutions, each
 * on an image of a few lines. */
#include <string.h>

#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/conv_pass.h"
#include "graph/ops.h"
#include "op/separable.h"

/* Bytes between the convolutions of a band: the larger part of a small L2.  With a third of it
 * mobilenet_v2 is 5 % slower, with twice as much no faster. */
#define BAND_BYTES (384 << 10)

enum { EXPAND = EW_SEPARABLE_EXPAND, DEPTHWISE, PROJECT, STAGES };

struct work {
    struct ew_conv conv[STAGES]; /* of the whole image; shape, epilogue without pointers */
    bool has[STAGES];
    int last;
    int64_t band, bands;   /* most rows of outputs in a band; bands of an image */
    size_t packed[STAGES]; /* offset of the filters, in bytes */
    size_t packed_bytes;
    /* A thread's scratch: expanded lines, depthwise outputs, the kernels' scratch. */
    size_t depthwise_at, kernels_at, scratch;
};

static const struct ew_conv_axis *rows_of(const struct work *w)
{
    return &w->conv[DEPTHWISE].shape.axis[1];
}

/* Input lines of n rows of outputs. */
static int64_t lines_of(const struct work *w, int64_t n)
{
    const struct ew_conv_axis *a = rows_of(w);
    return ew_min_i64((n - 1) * a->stride + (int64_t)(a->taps - 1) * a->dilation + 1, a->in);
}

/* Floats of an expanded line, and of a row of depthwise outputs. */
static int64_t line_floats(const struct work *w)
{
    return (int64_t)w->conv[DEPTHWISE].shape.axis[2].in * w->conv[DEPTHWISE].shape.cin;
}

static int64_t row_floats(const struct work *w)
{
    return (int64_t)w->conv[DEPTHWISE].shape.axis[2].out * w->conv[DEPTHWISE].shape.cin;
}

static size_t expanded_bytes(const struct work *w, int64_t rows)
{
    return w->has[EXPAND] ? ew_float_bytes((size_t)(lines_of(w, rows) * line_floats(w))) : 0;
}

static size_t depthwise_bytes(const struct work *w, int64_t rows)
{
    return w->has[PROJECT] ? ew_float_bytes((size_t)(rows * row_floats(w))) : 0;
}

/* The shape of a stage for an image of `in` lines and `out` rows. */
static struct ew_conv_shape part_of(const struct work *w, int stage, int64_t in, int64_t out)
{
    struct ew_conv_shape s = w->conv[stage].shape;
    s.batch = 1;
    s.axis[1].in = (int32_t)in;
    s.axis[1].out = (int32_t)out;
    return s;
}

static void plan_bands(struct work *w)
{
    const int64_t high = rows_of(w)->out;
    int64_t rows = 1;
    while (rows < high && expanded_bytes(w, rows + 1) + depthwise_bytes(w, rows + 1) <= BAND_BYTES)
        rows++;
    w->bands = (high + rows - 1) / rows;
    w->band = (high + w->bands - 1) / w->bands;
}

static void plan_memory(const struct ew_kernels *k, struct work *w)
{
    const int64_t lines = lines_of(w, w->band);
    size_t most = 0;
    for (int i = 0; i < STAGES; i++) {
        if (!w->has[i])
            continue;
        const struct ew_conv_shape *s = &w->conv[i].shape;
        const struct ew_conv_shape part =
            part_of(w, i, i == PROJECT ? w->band : lines, i == EXPAND ? lines : w->band);
        const bool depthwise = i == DEPTHWISE;
        const size_t bytes = depthwise ? k->depthwise_scratch(&part) : k->conv_scratch(&part);
        most = bytes > most ? bytes : most;
        w->packed[i] = w->packed_bytes;
        w->packed_bytes +=
            ew_float_bytes(depthwise ? k->depthwise_pack_size(s) : k->conv_pack_size(s));
    }
    w->depthwise_at = expanded_bytes(w, w->band);
    w->kernels_at = w->depthwise_at + depthwise_bytes(w, w->band);
    w->scratch = w->kernels_at + most;
}

static bool resolve(const struct ew_call *c, const struct ew_kernels *k, struct work *w)
{
    struct ew_separable s;
    struct ew_conv_sizes sizes;
    memset(w, 0, sizeof(*w));
    if (c->in[0]->dtype != EW_F32 || ew_separable_resolve(c, &s) != EW_OK)
        return false;
    w->last = s.last;
    for (int i = 0; i < STAGES; i++) {
        w->has[i] = s.has[i];
        if (!s.has[i])
            continue;
        if (ew_conv_resolve(&s.call[i], &sizes) != EW_OK || ew_tensor_count(s.out[i]) >= INT32_MAX)
            return false;
        ew_conv_shape_of(&sizes, &w->conv[i].shape);
        const struct ew_epilogue_attr *end = &s.attr[i].end;
        w->conv[i].end = (struct ew_epilogue){.add_after = end->add_after,
                                              .act = (enum ew_act)end->act,
                                              .lo = (float)end->lo,
                                              .hi = (float)end->hi};
    }
    const struct ew_conv_axis *wide = &w->conv[DEPTHWISE].shape.axis[2];
    if (!k->depthwise_fits(&w->conv[DEPTHWISE].shape) || wide->in <= EW_SEPARABLE_NARROW ||
        wide->out <= EW_SEPARABLE_NARROW || rows_of(w)->out < 1)
        return false;
    plan_bands(w);
    plan_memory(k, w);
    return true;
}

/* ---- Running ---- */

static const float *input(const struct ew_call *c, int i)
{
    return i < c->n_in && c->in[i] ? c->in[i]->data : NULL;
}

/* A thread's run; which expanded lines are at the start of its scratch. */
struct thread {
    const struct ew_call *c;
    const struct work *w;
    const struct ew_kernels *k;
    char *scratch;
    int64_t image, first, end; /* expanded lines [first, end) of an image */
};

/* Rows [row, end) of outputs of an image; lines [first, last) that they read. */
struct band {
    int64_t image, row, end, first, last;
    int32_t pad; /* lines of padding before the first */
};

static struct band band_at(const struct work *w, int64_t tile)
{
    const struct ew_conv_axis *a = rows_of(w);
    const int64_t b = tile % w->bands;
    struct band out = {
        .image = tile / w->bands, .row = a->out * b / w->bands, .end = a->out * (b + 1) / w->bands};
    const int64_t first = out.row * a->stride - a->pad;
    const int64_t last =
        (out.end - 1) * a->stride - a->pad + (int64_t)(a->taps - 1) * a->dilation + 1;
    out.first = ew_min_i64(ew_max_i64(first, 0), a->in);
    out.last = ew_max_i64(ew_min_i64(last, a->in), out.first);
    out.pad = (int32_t)(out.first - first);
    return out;
}

/* Runs a stage from x to y on `in` lines, with `pad` lines of padding before them. */
static void run_stage(const struct thread *t, int stage, const struct band *b, const float *x,
                      float *y, int64_t in, int64_t out)
{
    static const int bias[STAGES] = {EW_SEPARABLE_EXPAND_B, EW_SEPARABLE_DEPTHWISE_B,
                                     EW_SEPARABLE_PROJECT_B};
    const struct work *w = t->w;
    struct ew_conv conv = w->conv[stage];
    conv.shape = part_of(w, stage, in, out);
    conv.x = x;
    conv.y = y;
    conv.w = (const float *)(const void *)((const char *)t->c->packed + w->packed[stage]);
    conv.end.bias = input(t->c, bias[stage]);
    const float *add = stage == w->last ? input(t->c, EW_SEPARABLE_RESIDUAL) : NULL;
    if (add)
        conv.end.add = add + (y - (const float *)t->c->out[0]->data);
    void *scratch = t->scratch + w->kernels_at;
    if (stage != DEPTHWISE) {
        t->k->conv_run(&conv, 0, t->k->conv_tiles(&conv.shape), scratch);
        return;
    }
    conv.shape.axis[1].pad = b->pad;
    t->k->depthwise_run(&conv, 0, t->k->depthwise_tiles(&conv.shape), scratch);
}

/* The input lines of the depthwise convolution; those of the band before are reused. */
static const float *lines_at(struct thread *t, const struct band *b)
{
    const struct work *w = t->w;
    const struct ew_conv_shape *s = &w->conv[w->has[EXPAND] ? EXPAND : DEPTHWISE].shape;
    const int64_t floats = (int64_t)s->axis[2].in * s->cin, to = line_floats(w);
    const float *x = input(t->c, EW_SEPARABLE_X) + b->image * s->axis[1].in * floats;
    float *lines = (float *)(void *)t->scratch;
    int64_t from = b->first;
    if (!w->has[EXPAND])
        return x + b->first * floats;
    if (t->image == b->image && t->first <= b->first && b->first < t->end) {
        from = t->end;
        memmove(lines, lines + (b->first - t->first) * to,
                (size_t)((from - b->first) * to) * sizeof(*lines));
    }
    if (from < b->last)
        run_stage(t, EXPAND, b, x + from * floats, lines + (from - b->first) * to, b->last - from,
                  b->last - from);
    t->image = b->image;
    t->first = b->first;
    t->end = ew_max_i64(b->last, from);
    return lines;
}

static void run_band(struct thread *t, const struct band *b)
{
    const struct work *w = t->w;
    const struct ew_conv_shape *last = &w->conv[w->last].shape;
    const int64_t rows = b->end - b->row, floats = (int64_t)last->axis[2].out * last->cout;
    float *y = (float *)t->c->out[0]->data + (b->image * last->axis[1].out + b->row) * floats;
    float *between = (float *)(void *)(t->scratch + w->depthwise_at);
    run_stage(t, DEPTHWISE, b, lines_at(t, b), w->has[PROJECT] ? between : y, b->last - b->first,
              rows);
    if (w->has[PROJECT])
        run_stage(t, PROJECT, b, between, y, rows, rows);
}

static int64_t tiles_of(const struct work *w)
{
    return w->bands * w->conv[DEPTHWISE].shape.batch;
}

static void run_parts(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct work *w = c->state;
    struct thread t = {.c = c,
                       .w = w,
                       .k = ew_cpu(c->be)->isa,
                       .scratch = ew_thread_scratch(c, w->scratch, worker),
                       .image = -1};
    const int64_t last = ew_parallel_range_tile(c->be, tiles_of(w), end);
    for (int64_t i = ew_parallel_range_tile(c->be, tiles_of(w), begin); i < last; i++) {
        const struct band b = band_at(w, i);
        run_band(&t, &b);
    }
}

static ew_err run(const struct ew_call *c)
{
    ew_parallel_for(c, ew_parallel_ranges(c->be, tiles_of(c->state)), run_parts);
    return EW_OK;
}

static ew_err prepare(const struct ew_call *c)
{
    EW_CHECK(resolve(c, ew_cpu(c->be)->isa, c->state), EW_ERR_INTERNAL,
             "%s: the convolution has changed", c->name);
    return EW_OK;
}

static ew_err pack(const struct ew_call *c)
{
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    const struct work *w = c->state;
    static const int weights[STAGES] = {EW_SEPARABLE_EXPAND_W, EW_SEPARABLE_DEPTHWISE_W,
                                        EW_SEPARABLE_PROJECT_W};
    memset(c->packed, 0, w->packed_bytes);
    for (int i = 0; i < STAGES; i++) {
        const struct ew_conv_shape *s = &w->conv[i].shape;
        float *to = (float *)(void *)((char *)c->packed + w->packed[i]);
        if (w->has[i] && i == DEPTHWISE)
            k->depthwise_pack(s, input(c, weights[i]), to);
        else if (w->has[i])
            k->conv_pack(s, input(c, weights[i]), to, 0, k->conv_pack_tiles(s));
    }
    return EW_OK;
}

/* True if all filters are known before the run. */
static bool is_fixed(const struct ew_call *c)
{
    return input(c, EW_SEPARABLE_DEPTHWISE_W) &&
           (c->n_in <= EW_SEPARABLE_EXPAND_W || !c->in[EW_SEPARABLE_EXPAND_W] ||
            input(c, EW_SEPARABLE_EXPAND_W)) &&
           (c->n_in <= EW_SEPARABLE_PROJECT_W || !c->in[EW_SEPARABLE_PROJECT_W] ||
            input(c, EW_SEPARABLE_PROJECT_W));
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    struct work w;
    if (query->phase != EW_PHASE_FORWARD || c->train || !is_fixed(c) ||
        !resolve(c, ew_cpu(query->be)->isa, &w))
        return 0;
    out[0] =
        (struct ew_kernel){.name = "separable",
                           .run = run,
                           .prepare = prepare,
                           .pack = pack,
                           .packs = 1u << EW_SEPARABLE_EXPAND_W | 1u << EW_SEPARABLE_DEPTHWISE_W |
                                    1u << EW_SEPARABLE_PROJECT_W,
                           .packed = w.packed_bytes,
                           .scratch = ew_thread_scratch_bytes(query->be, w.scratch),
                           .state = sizeof(struct work)};
    return 1;
}

const struct ew_kernel_family ew_offer_separable = {.ops = EW_FAMILY_OPS(&ew_op_separable_conv),
                                                    .offer = offer};
