/* SPDX-License-Identifier: Apache-2.0 */
/* Training of dense layers, and of convolutions on small feature maps. */
#include "backend/cpu/step/tap_pairs_step.h"
#include "backend/cpu/cpu_backend.h"

#include <math.h>

#include "backend/cpu/fuse/fuse.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/bias_grad.h"
#include "backend/cpu/step/cpu_update.h"
#include "op/optimizer.h"

#define TRANSPOSE_ALONE (16 << 10) /* floats to transpose below which one thread is faster */
/* MACs below which one thread is faster: with two, cache lines that both write move between
 * cores. */
#define DENSE_ALONE (128 << 10)

struct state {
    struct ew_conv_shape shape;
    bool relu; /* forward ends in a ReLU */
    /* Backward: 1 + the value of ew_optimizer.handed at which the optimiser's state of unmet taps
     * was found to be zero. */
    int64_t still;
};

void ew_tap_pairs_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu)
{
    *(struct state *)c->state = (struct state){.shape = *s, .relu = relu};
}

/* The threads' work; `size`: bytes of scratch for each thread. */
struct work {
    const struct ew_kernels *k;
    struct ew_unpacked_conv conv;
    struct ew_unpacked_grads grad;
    char *scratch;
    size_t size;
};

/* ---- Forward: scratch is x transposed, then the threads' scratch ---- */

static void transpose_tiles_of(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->tap_pairs_transpose(&w->conv, begin, end);
}

static void run_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->tap_pairs_run(&w->conv, begin, end, ew_thread_scratch_at(w->scratch, w->size, worker));
}

static void small_dense_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->small_dense_run(&w->conv, begin, end);
}

/* The pool, or NULL for small layers. */
static struct ew_pool *pool_for(const struct ew_call *c, const struct ew_conv_shape *s)
{
    return (int64_t)s->batch * s->cin * s->cout < DENSE_ALONE ? NULL : ew_cpu(c->be)->pool;
}

static ew_err run_forward(const struct ew_call *c)
{
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    const struct state *state = c->state;
    const struct ew_conv_shape *s = &state->shape;
    const bool dense = k->small_dense_pays(s);
    const size_t transposed = dense ? k->small_dense_transposed(s) : k->tap_pairs_transposed(s);
    struct work w = {.k = k,
                     .conv = {.shape = *s,
                              .x = c->in[0]->data,
                              .w = c->in[1]->data,
                              .bias = c->n_in > 2 && c->in[2] ? c->in[2]->data : NULL,
                              .relu = state->relu,
                              .y = c->out[0]->data,
                              .transposed = c->scratch},
                     .scratch = (char *)c->scratch + ew_float_bytes(transposed),
                     .size = k->tap_pairs_scratch(s)};
    if (dense) {
        ew_pool_run(pool_for(c, s), k->small_dense_tiles(s), small_dense_tiles, &w);
        k->small_dense_sum(&w.conv);
        return EW_OK;
    }
    ew_pool_run(transposed < TRANSPOSE_ALONE ? NULL : ew_cpu(c->be)->pool,
                k->tap_pairs_transpose_tiles(s), transpose_tiles_of, &w);
    ew_pool_run(ew_cpu(c->be)->pool, k->tap_pairs_tiles(s), run_tiles, &w);
    return EW_OK;
}

struct ew_kernel ew_tap_pairs_forward_kernel(const struct ew_backend *be,
                                             const struct ew_conv_shape *s)
{
    const struct ew_kernels *k = ew_cpu(be)->isa;
    const size_t conv = ew_float_bytes(k->tap_pairs_transposed(s)) +
                        ew_thread_scratch_bytes(be, k->tap_pairs_scratch(s));
    return (struct ew_kernel){
        .name = "tap pairs",
        .run = run_forward,
        .scratch = k->small_dense_pays(s) ? ew_float_bytes(k->small_dense_transposed(s)) : conv,
        .state = sizeof(struct state)};
}

/* ---- Backward: scratch is dy transposed and partial sums, then the threads' scratch ---- */

static void small_dense_grad_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->small_dense_grad_run(&w->grad, begin, end);
}

static void grad_turn_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->tap_pairs_grad_transpose(&w->grad, begin, end);
}

static void grad_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->tap_pairs_grad_run(&w->grad, begin, end,
                             ew_thread_scratch_at(w->scratch, w->size, worker));
}

static void grad_sum_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->tap_pairs_grad_sum(&w->grad, begin, end);
}

static void run_gradients(const struct ew_call *c, struct work *w)
{
    const struct ew_conv_shape *s = &w->grad.filter.shape;
    const int64_t dy = (int64_t)s->batch * s->cout;
    if (w->k->small_dense_pays(s)) {
        ew_pool_run(pool_for(c, s), w->k->small_dense_grad_tiles(s), small_dense_grad_tiles, w);
        w->k->small_dense_grad_sum(&w->grad);
        return;
    }
    ew_pool_run(dy < TRANSPOSE_ALONE ? NULL : ew_cpu(c->be)->pool,
                w->k->tap_pairs_grad_transpose_tiles(s), grad_turn_tiles, w);
    ew_pool_run(ew_cpu(c->be)->pool, w->k->tap_pairs_grad_tiles(s), grad_tiles, w);
    if (w->grad.dx)
        ew_pool_run(ew_cpu(c->be)->pool, w->k->tap_pairs_grad_sum_tiles(s), grad_sum_tiles, w);
}

static bool all_zero(const float *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(p[i]) <= 0))
            return false;
    return true;
}

/* True if the optimiser's state of taps that meet only padding is zero. */
static bool are_still(const struct ew_call *update, const struct ew_conv_shape *s, uint32_t met)
{
    const int64_t taps = (int64_t)s->axis[0].taps * s->axis[1].taps * s->axis[2].taps;
    for (int i = 2; i < update->n_in; i++)
        for (int64_t k = 0; k < s->cout * taps; k++)
            if (!(met >> k % taps & 1) &&
                !all_zero((const float *)update->in[i]->data + k * s->cin, s->cin))
                return false;
    return true;
}

/* A 3x3 filter on a single pixel meets padding with eight of nine taps.  Their gradient is zero,
 * and without optimiser state and weight decay so is their update: they need not be read or
 * written. */
static bool may_skip(const struct ew_call *c, struct state *state)
{
    const struct ew_call *update = ew_call_fused(c, EW_ROLE_UPDATE);
    const struct ew_optimizer *o = update ? update->attr : NULL;
    const uint32_t met = ew_cpu(c->be)->isa->tap_pairs_met(&state->shape);
    if (!o || o->weight_decay > 0)
        return false;
    if (state->still != o->handed + 1 && are_still(update, &state->shape, met))
        state->still = o->handed + 1;
    return state->still == o->handed + 1;
}

struct ew_unpacked_grads ew_unpacked_grads_of(const struct ew_call *c,
                                              const struct ew_conv_shape *s,
                                              const struct ew_update *update)
{
    return (struct ew_unpacked_grads){.filter = {.shape = *s,
                                                 .x = c->in[0]->data,
                                                 .dy = c->dout[0]->data,
                                                 .dw = c->din[1] ? c->din[1]->data : NULL,
                                                 .add = !(c->fresh & 2),
                                                 .update = update},
                                      .no_filter = !c->din[1],
                                      .w = c->in[1]->data,
                                      .dx = c->din[0] ? c->din[0]->data : NULL,
                                      .add_dx = !(c->fresh & 1),
                                      .shared = c->scratch};
}

static ew_err run_backward(const struct ew_call *c)
{
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    struct state *state = c->state;
    const struct ew_conv_shape *s = &state->shape;
    struct ew_update update;
    if (!c->dout[0])
        return EW_OK;
    struct work w = {.k = k,
                     .grad = ew_unpacked_grads_of(c, s, ew_cpu_update_of(c, &update)),
                     .scratch = (char *)c->scratch + ew_float_bytes(k->tap_pairs_grad_shared(s)),
                     .size = k->tap_pairs_grad_scratch(s)};
    w.grad.skip_unmet = may_skip(c, state);
    const bool masks = state->relu && !ew_has_role(c, EW_ROLE_RELU_MASKED);
    if (masks || (c->n_in > 2 && c->din[2]))
        ew_bias_gradient(c, masks ? c->out[0] : NULL);
    if (c->din[0] || c->din[1])
        run_gradients(c, &w);
    return EW_OK;
}

struct ew_kernel ew_tap_pairs_backward_kernel(const struct ew_backend *be,
                                              const struct ew_conv_shape *s)
{
    const struct ew_kernels *k = ew_cpu(be)->isa;
    const size_t conv = ew_float_bytes(k->tap_pairs_grad_shared(s)) +
                        ew_thread_scratch_bytes(be, k->tap_pairs_grad_scratch(s));
    const size_t gradients =
        k->small_dense_pays(s) ? ew_float_bytes(k->small_dense_grad_shared(s)) : conv;
    const size_t bias = ew_bias_scratch(s->cout);
    return (struct ew_kernel){.name = "tap pairs gradients",
                              .run = run_backward,
                              .fresh = true,
                              .roles = EW_ROLE_UPDATE | EW_ROLE_RELU_MASKED,
                              .scratch = gradients > bias ? gradients : bias,
                              .state = sizeof(struct state)};
}
