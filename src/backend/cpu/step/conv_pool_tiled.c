/* SPDX-License-Identifier: Apache-2.0 */
/* Training of a first convolution with a max pool of 3x3 and stride 2.  A tile is an image. */
#include "backend/cpu/step/conv_pool_tiled.h"
#include "backend/cpu/cpu_backend.h"

#include <string.h>

#include "backend/cpu/parallel.h"

#define TAPS   3
#define STEP   2
#define FLOATS (96 << 10) /* of the convolution's output in a strip, about: it stays in L2 */

struct state {
    struct ew_conv_shape shape;
    bool relu;
};

void ew_conv_pool_tiled_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu)
{
    *(struct state *)c->state = (struct state){*s, relu};
}

bool ew_conv_pool_tiled_fits(const struct ew_conv_shape *s)
{
    return s->groups == 1 && s->axis[0].in == 1 && s->axis[0].out == 1 && s->axis[0].taps == 1 &&
           s->axis[1].pad >= 0 && s->axis[1].pad < s->axis[1].taps && s->axis[1].dilation == 1 &&
           s->axis[1].out >= TAPS && s->axis[2].out >= TAPS;
}

static int64_t windows_of(int64_t in)
{
    return (in - TAPS) / STEP + 1;
}

/* Rows of the convolution's output that so many rows of windows cover. */
static int64_t rows_of(int64_t windows)
{
    return (windows - 1) * STEP + TAPS;
}

static int64_t row_floats(const struct ew_conv_shape *s)
{
    return (int64_t)s->axis[2].out * s->cout;
}

/* Rows of windows in a strip. */
static int64_t strip_rows(const struct ew_conv_shape *s)
{
    const int64_t fit = (FLOATS / row_floats(s) - TAPS) / STEP + 1;
    return ew_min_i64(fit > 1 ? fit : 1, windows_of(s->axis[1].out));
}

/* The convolution of output rows [first, last) of one image; *x: its first input row. */
static struct ew_conv_shape part_of(const struct ew_conv_shape *s, int64_t first, int64_t last,
                                    int64_t *x)
{
    struct ew_conv_shape part = *s;
    struct ew_conv_axis *a = &part.axis[1];
    const int64_t from = first * a->stride - a->pad, to = (last - 1) * a->stride - a->pad + a->taps;
    *x = from > 0 ? from : 0;
    part.batch = 1;
    a->in = (int32_t)(ew_min_i64(to, a->in) - *x);
    a->out = (int32_t)(last - first);
    a->pad = (int32_t)(*x - from);
    return part;
}

static struct ew_conv_shape pool_of(const struct ew_conv_shape *s, int64_t windows)
{
    struct ew_conv_shape pool = {.batch = 1, .groups = s->cout, .cin = s->cout, .cout = s->cout};
    const struct ew_conv_axis one = {1, 1, 1, 1, 1, 0};
    pool.axis[0] = one;
    pool.axis[1] =
        (struct ew_conv_axis){(int32_t)rows_of(windows), (int32_t)windows, TAPS, STEP, 1, 0};
    pool.axis[2] = (struct ew_conv_axis){
        s->axis[2].out, (int32_t)windows_of(s->axis[2].out), TAPS, STEP, 1, 0};
    return pool;
}

/* A strip of an image. */
struct strip {
    int64_t image, first, windows; /* rows of windows */
};

/* Offset of its first element in y, dy and the indices of maxima. */
static int64_t pooled_at(const struct ew_conv_shape *s, const struct strip *b)
{
    const int64_t high = windows_of(s->axis[1].out), wide = windows_of(s->axis[2].out);
    return (b->image * high + b->first) * wide * s->cout;
}

static const float *input_at(const struct ew_conv_shape *s, const float *x, int64_t image,
                             int64_t row)
{
    return x + (image * s->axis[1].in + row) * s->axis[2].in * s->cin;
}

/* Bytes of the convolution's output in a strip, with which a thread's scratch begins. */
static size_t strip_bytes(const struct ew_conv_shape *s)
{
    return ew_float_bytes((size_t)(rows_of(strip_rows(s)) * row_floats(s)));
}

struct work {
    const struct ew_call *c;
    const struct ew_kernels *k;
    const struct state *state;
    float *shared; /* forward: the packed filter; backward: gradients of each image */
    char *scratch;
    size_t size, partial; /* bytes for each thread, and of these for partial sums */
};

/* ---- Forward: scratch is the packed filter, then the threads' scratch ---- */

/* Strips overlap by one row, which the previous strip has computed. */
static void forward_strip(const struct work *w, const struct strip *b, float *pooled, char *scratch)
{
    const struct ew_conv_shape *s = &w->state->shape;
    const struct ew_call *c = w->c;
    const int64_t kept = b->first > 0, row = b->first * STEP + kept, floats = row_floats(s);
    int64_t x;
    struct ew_conv conv = {.shape = part_of(s, row, b->first * STEP + rows_of(b->windows), &x),
                           .w = w->shared,
                           .y = pooled + kept * floats};
    const struct ew_pooling pool = {.shape = pool_of(s, b->windows),
                                    .max = true,
                                    .x = pooled,
                                    .y = (float *)c->out[0]->data + pooled_at(s, b),
                                    .index = (uint8_t *)c->aux + pooled_at(s, b),
                                    .relu = w->state->relu};
    conv.x = input_at(s, c->in[0]->data, b->image, x);
    conv.end.bias = c->n_in > 2 && c->in[2] ? c->in[2]->data : NULL;
    w->k->conv_run(&conv, 0, w->k->conv_tiles(&conv.shape), scratch);
    w->k->max_pool_run(&pool, 0, b->windows);
    memcpy(pooled, pooled + b->windows * STEP * floats, (size_t)floats * sizeof(float));
}

static void forward_images(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    const struct ew_conv_shape *s = &w->state->shape;
    const int64_t high = windows_of(s->axis[1].out), each = strip_rows(s);
    char *scratch = ew_thread_scratch_at(w->scratch, w->size, worker);
    for (struct strip b = {.image = begin}; b.image < end; b.image++)
        for (b.first = 0; b.first < high; b.first += each) {
            b.windows = ew_min_i64(each, high - b.first);
            forward_strip(w, &b, (float *)(void *)scratch, scratch + strip_bytes(s));
        }
}

/* The convolution of an image's first strip; its packed filters serve all strips. */
static struct ew_conv_shape first_strip(const struct ew_conv_shape *s)
{
    int64_t x;
    return part_of(s, 0, rows_of(strip_rows(s)), &x);
}

static size_t forward_size(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    const struct ew_conv_shape part = first_strip(s);
    return strip_bytes(s) + k->conv_scratch(&part);
}

static ew_err run_forward(const struct ew_call *c)
{
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    const struct state *state = c->state;
    const struct ew_conv_shape part = first_strip(&state->shape);
    struct work w = {.c = c,
                     .k = k,
                     .state = state,
                     .shared = c->scratch,
                     .scratch = (char *)c->scratch + ew_float_bytes(k->conv_pack_size(&part)),
                     .size = forward_size(k, &state->shape)};
    k->conv_pack(&part, c->in[1]->data, w.shared, 0, k->conv_pack_tiles(&part));
    ew_pool_run(ew_cpu(c->be)->pool, state->shape.batch, forward_images, &w);
    return EW_OK;
}

struct ew_kernel ew_conv_pool_tiled_forward_kernel(const struct ew_backend *be,
                                                   const struct ew_conv_shape *s)
{
    const struct ew_conv_shape part = first_strip(s);
    return (struct ew_kernel){.name = "tiled conv+max pool",
                              .run = run_forward,
                              .scratch =
                                  ew_float_bytes(ew_cpu(be)->isa->conv_pack_size(&part)) +
                                  ew_thread_scratch_bytes(be, forward_size(ew_cpu(be)->isa, s)),
                              .state = sizeof(struct state)};
}

/* ---- Backward: scratch is the gradients of each image, then the threads' scratch ---- */

static int64_t filter_of(const struct ew_conv_shape *s)
{
    return (int64_t)s->cout * s->axis[1].taps * s->axis[2].taps * s->cin;
}

/* Floats of an image's gradients: filter, then bias. */
static int64_t image_of(const struct ew_conv_shape *s)
{
    return filter_of(s) + s->cout;
}

/* Bytes for partial sums: the maximum over strips, which differ in rows and padding. */
static size_t partial_bytes(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    const int64_t each = strip_rows(s), high = windows_of(s->axis[1].out);
    size_t most = 0;
    for (int64_t first = 0; first < high; first += each) {
        int64_t x;
        const int64_t rows = rows_of(ew_min_i64(each, high - first));
        const struct ew_conv_shape part = part_of(s, first * STEP, first * STEP + rows, &x);
        const size_t bytes = ew_float_bytes(k->conv_wgrad_partial(&part));
        most = bytes > most ? bytes : most;
    }
    return most;
}

static size_t backward_size(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    const struct ew_conv_shape part = first_strip(s);
    return strip_bytes(s) + partial_bytes(k, s) + k->conv_wgrad_scratch(&part);
}

static void backward_strip(const struct work *w, const struct strip *b, char *scratch)
{
    const struct ew_conv_shape *s = &w->state->shape;
    const int64_t row = b->first * STEP;
    float *pooled = (float *)(void *)scratch, *to = w->shared + b->image * image_of(s);
    int64_t x;
    const struct ew_pooling pool = {.shape = pool_of(s, b->windows),
                                    .max = true,
                                    .dy = (const float *)w->c->dout[0]->data + pooled_at(s, b),
                                    .index = (uint8_t *)w->c->aux + pooled_at(s, b),
                                    .dx = pooled};
    struct ew_conv_wgrad f = {.shape = part_of(s, row, row + rows_of(b->windows), &x),
                              .dy = pooled,
                              .dw = to,
                              .db = to + filter_of(s),
                              .partial = (float *)(void *)(scratch + strip_bytes(s)),
                              .add = b->first > 0,
                              .add_db = b->first > 0};
    f.x = input_at(s, w->c->in[0]->data, b->image, x);
    w->k->max_pool_back_run(&pool, 0, w->k->max_pool_back_tiles(&pool.shape));
    w->k->conv_wgrad_run(&f, 0, w->k->conv_wgrad_tiles(&f.shape),
                         scratch + strip_bytes(s) + w->partial);
    w->k->conv_wgrad_sum(&f, 0, w->k->conv_wgrad_sum_tiles(&f.shape));
}

static void backward_images(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    const struct ew_conv_shape *s = &w->state->shape;
    const int64_t high = windows_of(s->axis[1].out), each = strip_rows(s);
    for (struct strip b = {.image = begin}; b.image < end; b.image++)
        for (b.first = 0; b.first < high; b.first += each) {
            b.windows = ew_min_i64(each, high - b.first);
            backward_strip(w, &b, ew_thread_scratch_at(w->scratch, w->size, worker));
        }
}

/* Adds the images in order. */
static void add_images(const struct ew_conv_shape *s, const float *from, float *to, int64_t n,
                       bool add)
{
    for (int64_t i = 0; i < n; i++) {
        float sum = add ? to[i] : 0;
        for (int64_t image = 0; image < s->batch; image++)
            sum += from[image * image_of(s) + i];
        to[i] = sum;
    }
}

static ew_err run_backward(const struct ew_call *c)
{
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    const struct state *state = c->state;
    const struct ew_conv_shape *s = &state->shape;
    const size_t shared = ew_float_bytes((size_t)(s->batch * image_of(s)));
    if (!c->dout[0])
        return EW_OK;
    struct work w = {.c = c,
                     .k = k,
                     .state = state,
                     .shared = c->scratch,
                     .scratch = (char *)c->scratch + shared,
                     .size = backward_size(k, s),
                     .partial = partial_bytes(k, s)};
    ew_pool_run(ew_cpu(c->be)->pool, s->batch, backward_images, &w);
    add_images(s, w.shared, c->din[1]->data, filter_of(s), !(c->fresh & 2));
    if (c->n_in > 2 && c->din[2])
        add_images(s, w.shared + filter_of(s), c->din[2]->data, s->cout, !(c->fresh & 4));
    return EW_OK;
}

struct ew_kernel ew_conv_pool_tiled_backward_kernel(const struct ew_backend *be,
                                                    const struct ew_conv_shape *s)
{
    return (struct ew_kernel){.name = "tiled conv+max pool wgrad",
                              .run = run_backward,
                              .fresh = true,
                              .scratch =
                                  ew_float_bytes((size_t)(s->batch * image_of(s))) +
                                  ew_thread_scratch_bytes(be, backward_size(ew_cpu(be)->isa, s)),
                              .state = sizeof(struct state)};
}
