/* SPDX-License-Identifier: Apache-2.0 */
/* Training of convolutions of few channels by Winograd F(5x5, 5x5). */
#include "backend/cpu/step/winograd_5x5_step.h"
#include "backend/cpu/cpu_backend.h"

#include "backend/cpu/fuse/fuse.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/bias_grad.h"
#include "backend/cpu/step/cpu_update.h"
#include "backend/cpu/step/tap_pairs_step.h"

struct state {
    struct ew_conv_shape shape;
    bool relu;   /* forward ends in a ReLU */
    bool pooled; /* with a max pool before it */
};

void ew_winograd_5x5_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu)
{
    *(struct state *)c->state = (struct state){.shape = *s, .relu = relu};
}

void ew_winograd_5x5_prepare_pool(const struct ew_call *c, const struct ew_conv_shape *s, bool relu)
{
    *(struct state *)c->state = (struct state){.shape = *s, .relu = relu, .pooled = true};
}

/* Each thread transforms the filter for itself, again for each range of tiles, into scratch of its
 * own: reading lines that another core has written is slower than computing them. */
struct work {
    const struct ew_kernels *k;
    const struct ew_backend *be;
    struct ew_conv conv;
    const float *w; /* untransformed */
    struct ew_unpacked_grads grad;
    char *scratch; /* the threads' scratch */
    size_t size;   /* bytes for each thread */
};

/* ---- Forward ---- */

static size_t packed_bytes(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    return ew_float_bytes(k->winograd_5x5_pack_size(s));
}

static size_t forward_bytes(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    return packed_bytes(k, s) + ew_align_up(k->winograd_5x5_scratch(s));
}

static void forward_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    const struct ew_conv_shape *s = &w->conv.shape;
    struct ew_conv conv = w->conv;
    float *packed = ew_thread_scratch_at(w->scratch, w->size, worker);
    w->k->winograd_5x5_pack(s, w->w, packed);
    conv.w = packed;
    const int64_t tiles = w->k->winograd_5x5_tiles(s);
    w->k->winograd_5x5_run(&conv, ew_parallel_range_tile(w->be, tiles, begin),
                           ew_parallel_range_tile(w->be, tiles, end),
                           (char *)packed + packed_bytes(w->k, s));
}

static ew_err run_forward(const struct ew_call *c)
{
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    const struct state *state = c->state;
    const struct ew_conv_shape *s = &state->shape;
    const struct ew_winograd_5x5_pool pool = {
        .relu = state->relu, .y = c->out[0]->data, .argmax = c->aux};
    const bool relu = state->relu && !state->pooled;
    struct work w = {.k = k,
                     .be = c->be,
                     .conv = {.shape = *s,
                              .x = c->in[0]->data,
                              .y = state->pooled ? NULL : c->out[0]->data,
                              .end = {.bias = c->n_in > 2 && c->in[2] ? c->in[2]->data : NULL,
                                      .act = relu ? EW_ACT_RELU : EW_ACT_NONE},
                              .pool = state->pooled ? &pool : NULL},
                     .w = c->in[1]->data,
                     .scratch = c->scratch,
                     .size = forward_bytes(k, s)};
    ew_pool_run(ew_cpu(c->be)->pool, ew_parallel_ranges(c->be, k->winograd_5x5_tiles(s)),
                forward_tiles, &w);
    return EW_OK;
}

struct ew_kernel ew_winograd_5x5_forward_kernel(const struct ew_backend *be,
                                                const struct ew_conv_shape *s)
{
    return (struct ew_kernel){.name = "winograd F(5x5,5x5)",
                              .run = run_forward,
                              .scratch =
                                  ew_thread_scratch_bytes(be, forward_bytes(ew_cpu(be)->isa, s)),
                              .state = sizeof(struct state)};
}

/* ---- Backward: scratch is what the threads share, then the threads' scratch ---- */

static size_t shared_bytes(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    return ew_float_bytes(k->winograd_5x5_grad_shared(s));
}

static size_t backward_bytes(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    return ew_align_up(k->winograd_5x5_grad_scratch(s));
}

static void backward_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    void *scratch = ew_thread_scratch_at(w->scratch, w->size, worker);
    if (w->grad.dx)
        w->k->winograd_5x5_grad_pack(&w->grad, scratch);
    const int64_t tiles = w->k->winograd_5x5_grad_tiles(&w->grad.filter.shape);
    w->k->winograd_5x5_grad_run(&w->grad, ew_parallel_range_tile(w->be, tiles, begin),
                                ew_parallel_range_tile(w->be, tiles, end), scratch);
}

static void run_gradients(const struct ew_call *c, struct work *w)
{
    const int64_t tiles = w->k->winograd_5x5_grad_tiles(&w->grad.filter.shape);
    ew_pool_run(ew_cpu(c->be)->pool, ew_parallel_ranges(c->be, tiles), backward_tiles, w);
    if (!w->grad.no_filter)
        w->k->winograd_5x5_grad_sum(&w->grad);
}

static ew_err run_backward(const struct ew_call *c)
{
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    const struct state *state = c->state;
    const struct ew_conv_shape *s = &state->shape;
    /* The pass over dy that applies a ReLU's mask also computes the bias gradient. */
    const bool relu = state->relu && !state->pooled;
    const bool biased = c->n_in > 2 && c->din[2], along = biased && c->din[1] && !relu;
    struct ew_update update;
    if (!c->dout[0])
        return EW_OK;
    struct work w = {.k = k,
                     .be = c->be,
                     .grad = ew_unpacked_grads_of(c, s, ew_cpu_update_of(c, &update)),
                     .scratch = (char *)c->scratch + shared_bytes(k, s),
                     .size = backward_bytes(k, s)};
    const struct ew_winograd_5x5_pool pool = {.dy = c->dout[0]->data, .argmax = c->aux};
    w.grad.pool = state->pooled ? &pool : NULL;
    w.grad.filter.db = along ? c->din[2]->data : NULL;
    w.grad.filter.add_db = !(c->fresh & 4);
    if (relu || (biased && !along))
        ew_bias_gradient(c, relu ? c->out[0] : NULL);
    if (c->din[0] || c->din[1])
        run_gradients(c, &w);
    return EW_OK;
}

struct ew_kernel ew_winograd_5x5_backward_kernel(const struct ew_backend *be,
                                                 const struct ew_conv_shape *s)
{
    const size_t gradients = shared_bytes(ew_cpu(be)->isa, s) +
                             ew_thread_scratch_bytes(be, backward_bytes(ew_cpu(be)->isa, s));
    const size_t bias = ew_bias_scratch(s->cout);
    return (struct ew_kernel){.name = "winograd F(5x5,5x5) gradients",
                              .run = run_backward,
                              .fresh = true,
                              .roles = EW_ROLE_UPDATE,
                              .scratch = gradients > bias ? gradients : bias,
                              .state = sizeof(struct state)};
}
