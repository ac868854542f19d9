/* SPDX-License-Identifier: Apache-2.0 */
/* Training steps of dense layers, x [m, k] with weights [n, k].  Weights change at each step, so
 * packing them costs as much as a small batch's products.  They are read where they lie instead:
 *
 *   forward    y' [n, m] = weights x'     a convolution over the weights, whose filters are x
 *   data       dx [m, k] = dy weights     a filter gradient: sums over the n rows of weights
 *   weights    dw [n, k] = dy' x          a filter gradient: sums over the m rows of x */
#include "backend/cpu/dense_step.h"

#include "backend/cpu/bias.h"
#include "backend/cpu/cpu_update.h"

bool ew_dense_pays(const struct ew_conv_shape *s)
{
    return s->batch > 0 && s->batch <= 4 * (int64_t)s->cout;
}

/* Weights as the images, rows as the filters. */
static struct ew_conv_shape swapped(const struct ew_conv_shape *s)
{
    struct ew_conv_shape r = *s;
    r.batch = s->cout;
    r.cout = s->batch;
    return r;
}

/* What the threads do, on scratch of `size` bytes each. */
struct work {
    const struct ew_call *c;
    const struct ew_kernels *k;
    struct ew_conv conv;
    struct ew_conv_filter filter;
    struct ew_transpose turn;
    float *packed;
    char *scratch;
    size_t size;
};

static void *own(const struct work *w, int worker)
{
    return w->scratch + ew_align_up(w->size) * (size_t)worker;
}

static void pack_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->conv_pack(&w->conv.shape, w->c->in[0]->data, w->packed, begin, end);
}

static void conv_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->conv_run(&w->conv, begin, end, own(w, worker));
}

static void turn_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->transpose_run(&w->turn, begin, end);
}

static void filter_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->conv_filter_run(&w->filter, begin, end, own(w, worker));
}

static void filter_sum_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->conv_filter_sum(&w->filter, begin, end);
}

static struct ew_conv_shape shape_of(const struct ew_call *c)
{
    const struct ew_conv_axis one = {.in = 1, .out = 1, .taps = 1, .stride = 1, .dilation = 1};
    return (struct ew_conv_shape){.batch = (int32_t)c->in[0]->shape.dim[0],
                                  .groups = 1,
                                  .cin = (int32_t)c->in[0]->shape.dim[1],
                                  .cout = (int32_t)c->in[1]->shape.dim[0],
                                  .axis = {one, one, one}};
}

static size_t floats(int64_t n)
{
    return ew_align_up((size_t)n * sizeof(float));
}

/* ---- Forward: scratch is packed rows, y', scratch for the threads ---- */

static ew_err run_forward(const struct ew_call *c)
{
    const struct ew_conv_shape s = shape_of(c), r = swapped(&s);
    struct work w = {.c = c, .k = c->be->isa, .packed = c->scratch, .conv = {.shape = r}};
    w.conv.x = c->in[1]->data;
    w.conv.w = w.packed;
    w.conv.y = (float *)((char *)c->scratch + floats((int64_t)w.k->conv_pack_size(&r)));
    w.scratch = (char *)w.conv.y + floats((int64_t)s.batch * s.cout);
    w.size = w.k->conv_scratch(&r);
    w.turn = (struct ew_transpose){.batch = 1,
                                   .rows = s.cout,
                                   .columns = s.batch,
                                   .in = w.conv.y,
                                   .bias = c->n_in > 2 && c->in[2] ? c->in[2]->data : NULL,
                                   .out = c->out[0]->data};
    ew_pool_run(c->be->pool, w.k->conv_pack_tiles(&r), pack_tiles, &w);
    ew_pool_run(c->be->pool, w.k->conv_tiles(&r), conv_tiles, &w);
    turn_tiles(&w, 0, w.k->transpose_tiles(&w.turn), 0); /* small, and in one core's cache */
    return EW_OK;
}

struct ew_kernel ew_dense_forward_kernel(const struct ew_backend *be, const struct ew_conv_shape *s)
{
    const struct ew_conv_shape r = swapped(s);
    return (struct ew_kernel){.name = "dense",
                              .run = run_forward,
                              .scratch = floats((int64_t)be->isa->conv_pack_size(&r)) +
                                         floats((int64_t)s->batch * s->cout) +
                                         ew_share_scratch(be, be->isa->conv_scratch(&r))};
}

/* ---- Backward: scratch is dy', partial sums, scratch for the threads ---- */

static void run_filter(struct work *w, char *scratch)
{
    const struct ew_conv_shape *s = &w->filter.shape;
    w->filter.partial = (float *)(void *)scratch;
    w->scratch = scratch + floats((int64_t)w->k->conv_filter_partial(s));
    w->size = w->k->conv_filter_scratch(s);
    ew_pool_run(w->c->be->pool, w->k->conv_filter_tiles(s), filter_tiles, w);
    ew_pool_run(w->c->be->pool, w->k->conv_filter_sum_tiles(s), filter_sum_tiles, w);
}

static void run_data(const struct ew_call *c, const struct ew_conv_shape *s)
{
    struct work w = {.c = c, .k = c->be->isa, .filter = {.shape = swapped(s)}};
    w.turn = (struct ew_transpose){.batch = 1,
                                   .rows = s->batch,
                                   .columns = s->cout,
                                   .in = c->dout[0]->data,
                                   .out = c->scratch};
    turn_tiles(&w, 0, w.k->transpose_tiles(&w.turn), 0);
    w.filter.x = c->in[1]->data;
    w.filter.dy = c->scratch;
    w.filter.dw = c->din[0]->data;
    w.filter.add = !(c->fresh & 1);
    run_filter(&w, (char *)c->scratch + floats((int64_t)s->batch * s->cout));
}

static void run_weights(const struct ew_call *c, const struct ew_conv_shape *s)
{
    struct ew_update update;
    struct work w = {.c = c, .k = c->be->isa, .filter = {.shape = *s}};
    w.filter.x = c->in[0]->data;
    w.filter.dy = c->dout[0]->data;
    w.filter.dw = c->din[1]->data;
    w.filter.add = !(c->fresh & 2);
    if (c->update) {
        ew_cpu_update_of(c->update, &update);
        w.filter.update = &update;
    }
    run_filter(&w, c->scratch);
}

static ew_err run_backward(const struct ew_call *c)
{
    const struct ew_conv_shape s = shape_of(c);
    if (!c->dout[0])
        return EW_OK;
    if (c->din[0])
        run_data(c, &s);
    if (c->din[1])
        run_weights(c, &s);
    if (c->n_in > 2 && c->din[2])
        ew_bias_gradient(c);
    return EW_OK;
}

static size_t filter_bytes(const struct ew_backend *be, const struct ew_conv_shape *s)
{
    return floats((int64_t)be->isa->conv_filter_partial(s)) +
           ew_share_scratch(be, be->isa->conv_filter_scratch(s));
}

struct ew_kernel ew_dense_backward_kernel(const struct ew_backend *be,
                                          const struct ew_conv_shape *s)
{
    const struct ew_conv_shape r = swapped(s);
    const size_t data = floats((int64_t)s->batch * s->cout) + filter_bytes(be, &r);
    const size_t weights = filter_bytes(be, s);
    return (struct ew_kernel){.name = "dense gradients",
                              .run = run_backward,
                              .fresh = true,
                              .updates = true,
                              .scratch = data > weights ? data : weights};
}
