/* SPDX-License-Identifier: Apache-2.0 */
/* The backward step of convolutions of few channels by F(5x5, 5x5). */
#include "backend/cpu/patch_step.h"

#include "backend/cpu/bias.h"
#include "backend/cpu/cpu_update.h"
#include "backend/cpu/share.h"

struct state {
    struct ew_conv_shape shape;
    bool relu; /* behind it */
};

void ew_patch_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu)
{
    *(struct state *)c->state = (struct state){*s, relu};
}

/* Scratch is what the threads share, then scratch for each. */
static size_t shared_bytes(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    return ew_align_up(k->patch_grad_shared(s) * sizeof(float));
}

struct work {
    const struct ew_kernels *k;
    struct ew_spots_grad grad;
    char *scratch;
    size_t size;
};

static void run_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->patch_grad_run(&w->grad, begin, end, w->scratch + ew_align_up(w->size) * (size_t)worker);
}

static void run_gradients(const struct ew_call *c, struct work *w)
{
    if (w->grad.dx)
        w->k->patch_grad_pack(&w->grad);
    ew_pool_run(c->be->pool, w->k->patch_grad_tiles(&w->grad.filter.shape), run_tiles, w);
    if (!w->grad.no_filter)
        w->k->patch_grad_sum(&w->grad);
}

static ew_err run_backward(const struct ew_call *c)
{
    const struct ew_kernels *k = c->be->isa;
    const struct state *state = c->state;
    const struct ew_conv_shape *s = &state->shape;
    /* Where a relu's gradient takes a pass over dy, that brings the bias's. */
    const bool biased = c->n_in > 2 && c->din[2], along = biased && c->din[1] && !state->relu;
    struct ew_update update; /* its settings change from run to run */
    if (!c->dout[0])
        return EW_OK;
    if (c->update)
        ew_cpu_update_of(c->update, &update);
    struct work w = {.k = k,
                     .grad = {.filter = {.shape = *s,
                                         .x = c->in[0]->data,
                                         .dy = c->dout[0]->data,
                                         .dw = c->din[1] ? c->din[1]->data : NULL,
                                         .add = !(c->fresh & 2),
                                         .update = c->update ? &update : NULL,
                                         .db = along ? c->din[2]->data : NULL,
                                         .add_db = !(c->fresh & 4)},
                              .no_filter = !c->din[1],
                              .w = c->in[1]->data,
                              .dx = c->din[0] ? c->din[0]->data : NULL,
                              .add_dx = !(c->fresh & 1),
                              .shared = c->scratch},
                     .scratch = (char *)c->scratch + shared_bytes(k, s),
                     .size = k->patch_grad_scratch(s)};
    if (state->relu || (biased && !along))
        ew_bias_gradient(c, state->relu ? c->out[0] : NULL);
    if (c->din[0] || c->din[1])
        run_gradients(c, &w);
    return EW_OK;
}

struct ew_kernel ew_patch_backward_kernel(const struct ew_backend *be,
                                          const struct ew_conv_shape *s)
{
    const size_t gradients =
        shared_bytes(be->isa, s) + ew_share_scratch(be, be->isa->patch_grad_scratch(s));
    const size_t bias = ew_bias_scratch(s->cout);
    return (struct ew_kernel){.name = "winograd gradients of few channels",
                              .run = run_backward,
                              .fresh = true,
                              .updates = true,
                              .scratch = gradients > bias ? gradients : bias,
                              .state = sizeof(struct state)};
}
