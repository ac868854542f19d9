/* SPDX-License-Identifier: Apache-2.0 */
/* Zero-skipping steps of dense layers and convolutions in training. */
#include "backend/cpu/step/sparse_step.h"
#include "backend/cpu/cpu_backend.h"

#include "backend/cpu/fuse/fuse.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/bias_grad.h"
#include "backend/cpu/step/cpu_update.h"
#include "backend/cpu/step/norm_step.h"
#include "backend/cpu/step/tap_pairs_step.h"

/* The fallback kernel's state follows it. */
struct state {
    struct ew_conv_shape shape;
    bool relu;   /* forward ends in a ReLU */
    double most; /* largest share of non-zeros for which zeros are skipped */
    ew_err (*otherwise)(const struct ew_call *c);
};

/* Each thread has its own dw: not worth it if these are larger than dy, as in layers of many
 * channels and few pixels. */
bool ew_scatter_grad_worth(const struct ew_kernel_query *query, const struct ew_conv_shape *s)
{
    const struct ew_kernels *k = ew_cpu(query->be)->isa;
    const size_t elements =
        (size_t)s->batch * (size_t)s->axis[1].out * (size_t)s->axis[2].out * (size_t)s->cout;
    return query->phase == EW_PHASE_BACKWARD &&
           k->scatter_grad_fits(s, query->c->din && query->c->din[0]) &&
           k->scatter_grad_shared(s) <= elements;
}

static int64_t rows_of(const struct ew_conv_shape *s)
{
    return (int64_t)s->batch * s->axis[0].out * s->axis[1].out * s->axis[2].out;
}

/* With at most that many rows, GEMM takes longer to pack weights than zeros to multiply: the
 * kernels here, which read weights in place, are faster for any data. */
#define FEW_ROWS     128
#define SCATTER_MOST 0.2 /* upper bound for filters of few taps */

/* The break-even share of non-zeros.  It falls with the number of taps, since Winograd saves more
 * MACs. */
static double most_of(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    const double one = 1.0 / ((double)s->axis[1].taps * s->axis[2].taps);
    if (k->sparse_fits(s))
        return rows_of(s) <= FEW_ROWS ? 1.0 : 0.67;
    return one < SCATTER_MOST ? one : SCATTER_MOST;
}

static struct ew_call other_call(const struct ew_call *c)
{
    struct ew_call other = *c;
    other.state = (char *)c->state + ew_align_up(sizeof(struct state));
    return other;
}

ew_err ew_sparse_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu,
                         const struct ew_kernel *otherwise)
{
    const struct ew_call other = other_call(c);
    *(struct state *)c->state = (struct state){.shape = *s,
                                               .relu = relu,
                                               .most = most_of(ew_cpu(c->be)->isa, s),
                                               .otherwise = otherwise->run};
    return otherwise->prepare ? otherwise->prepare(&other) : EW_OK;
}

static ew_err run_otherwise(const struct ew_call *c)
{
    const struct ew_call other = other_call(c);
    return ((const struct state *)c->state)->otherwise(&other);
}

/* Share of non-zeros of a tensor with row stride `step`; 0: contiguous. */
static double share_of(const struct ew_call *c, const struct ew_tensor *t, int64_t step)
{
    const int64_t n = t->shape.dim[t->shape.rank - 1];
    return ew_cpu(c->be)->isa->sparse_share(t->data, ew_tensor_count(t) / n, n, step ? step : n);
}

struct work {
    const struct ew_kernels *k;
    struct ew_unpacked_conv forward;
    struct ew_unpacked_grads backward;
    char *scratch;
    size_t size; /* bytes of scratch for each thread */
    bool by_x;
};

static void forward_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->sparse_run(&w->forward, begin, end, ew_thread_scratch_at(w->scratch, w->size, worker));
}

static void backward_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->sparse_grad_run(&w->backward, begin, end,
                          ew_thread_scratch_at(w->scratch, w->size, worker));
}

static void filter_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->sparse_wgrad_run(&w->backward, w->by_x, begin, end,
                           ew_thread_scratch_at(w->scratch, w->size, worker));
}

static void scatter_grad_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->scatter_grad_run(&w->backward, begin, end,
                           ew_thread_scratch_at(w->scratch, w->size, worker));
}

static void scatter_grad_outputs(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->scatter_grad_sum(&w->backward, begin, end);
}

static ew_err run_forward(const struct ew_call *c)
{
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    const struct state *state = c->state;
    const struct ew_conv_shape *s = &state->shape;
    if (share_of(c, c->in[0], 0) > state->most)
        return run_otherwise(c);
    struct work w = {.k = k,
                     .forward = {.shape = *s,
                                 .x = c->in[0]->data,
                                 .w = c->in[1]->data,
                                 .bias = c->n_in > 2 && c->in[2] ? c->in[2]->data : NULL,
                                 .relu = state->relu,
                                 .y = c->out[0]->data},
                     .scratch = c->scratch,
                     .size = k->sparse_scratch(s)};
    ew_pool_run(ew_cpu(c->be)->pool, k->sparse_tiles(s), forward_tiles, &w);
    /* The extra pass over the output costs less than the zeros save. */
    if (ew_has_role(c, EW_ROLE_OUTPUT_NORM_STATS))
        ew_norm_reduce(ew_call_fused(c, EW_ROLE_OUTPUT_NORM_STATS), c->scratch);
    return EW_OK;
}

/* Forward: bytes for statistics of the output, after which the threads' scratch is free. */
static size_t stats_bytes(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    return ew_float_bytes(k->batch_partial(rows_of(s), s->cout));
}

/* Backward: bytes that the threads share. */
static size_t shared_bytes(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    return k->sparse_fits(s) ? 0 : ew_float_bytes(k->scatter_grad_shared(s));
}

/* Backward: bytes of scratch for each thread. */
static size_t grad_scratch(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    if (!k->sparse_fits(s))
        return k->scatter_grad_scratch(s);
    const size_t data = k->sparse_grad_scratch(s), filter = k->sparse_wgrad_scratch(s);
    return filter > data ? filter : data;
}

static void run_gradients(const struct ew_call *c, struct work *w)
{
    const struct ew_conv_shape *s = &w->backward.filter.shape;
    if (!w->k->sparse_fits(s)) {
        ew_pool_run(ew_cpu(c->be)->pool, w->k->scatter_grad_tiles(s), scatter_grad_tiles, w);
        if (c->din[1])
            ew_pool_run(ew_cpu(c->be)->pool, s->cout, scatter_grad_outputs, w);
        return;
    }
    const int64_t tiles = w->k->sparse_wgrad_tiles(s, w->by_x);
    if (c->din[0] || (c->din[1] && tiles == 0))
        ew_pool_run(ew_cpu(c->be)->pool, w->k->sparse_grad_tiles(s), backward_tiles, w);
    if (c->din[1])
        ew_pool_run(ew_cpu(c->be)->pool, tiles, filter_tiles, w);
}

/* Wgrad skips the zeros of x, the output of a ReLU; dgrad runs on the fallback, since dy, the
 * gradient of a batch norm, has no zeros. */
static ew_err run_filter_by_x(const struct ew_call *c)
{
    const struct ew_conv_shape *s = &((const struct state *)c->state)->shape;
    struct ew_tensor *const din[] = {c->din[0], NULL, c->n_in > 2 ? c->din[2] : NULL};
    struct ew_call data = *c;
    struct ew_update update;
    data.din = din;
    EW_TRY(run_otherwise(&data));
    struct work w = {.k = ew_cpu(c->be)->isa,
                     .backward = ew_unpacked_grads_of(c, s, ew_cpu_update_of(c, &update)),
                     .scratch = c->scratch,
                     .size = grad_scratch(ew_cpu(c->be)->isa, s),
                     .by_x = true};
    ew_pool_run(ew_cpu(c->be)->pool, w.k->sparse_wgrad_tiles(s, true), filter_tiles, &w);
    return EW_OK;
}

static bool pays_by_x(const struct ew_call *c)
{
    const struct state *state = c->state;
    return c->din[1] && ew_cpu(c->be)->isa->sparse_fits(&state->shape) &&
           share_of(c, c->in[0], 0) <= state->most;
}

static ew_err run_backward(const struct ew_call *c)
{
    const struct state *state = c->state;
    const struct ew_conv_shape *s = &state->shape;
    const bool masks = state->relu && !ew_has_role(c, EW_ROLE_RELU_MASKED);
    struct ew_update update;
    if (!c->dout[0])
        return EW_OK;
    const double share = share_of(c, masks ? c->out[0] : c->dout[0], c->out_step);
    if (share > state->most)
        return pays_by_x(c) ? run_filter_by_x(c) : run_otherwise(c);
    struct work w = {.k = ew_cpu(c->be)->isa,
                     .backward = ew_unpacked_grads_of(c, s, ew_cpu_update_of(c, &update)),
                     .scratch = (char *)c->scratch + shared_bytes(ew_cpu(c->be)->isa, s),
                     .size = grad_scratch(ew_cpu(c->be)->isa, s),
                     .by_x = c->din[1] && ew_cpu(c->be)->isa->sparse_fits(s) &&
                             share_of(c, c->in[0], 0) < share};
    const bool bias = c->n_in > 2 && c->din[2], scattered = !ew_cpu(c->be)->isa->sparse_fits(s);
    w.backward.no_filter |= w.by_x; /* a pass of its own */
    w.backward.mask = ew_has_role(c, EW_ROLE_RELU_MASK);
    w.backward.filter.db = bias && scattered && !masks && c->din[1] ? c->din[2]->data : NULL;
    w.backward.filter.add_db = !(c->fresh & 4);
    if (masks || (bias && !w.backward.filter.db))
        ew_bias_gradient(c, masks ? c->out[0] : NULL);
    run_gradients(c, &w);
    return EW_OK;
}

struct ew_kernel ew_sparse_kernel(const struct ew_kernel_query *query,
                                  const struct ew_conv_shape *s, struct ew_kernel otherwise)
{
    const struct ew_kernels *k = ew_cpu(query->be)->isa;
    const bool forward = query->phase == EW_PHASE_FORWARD;
    const size_t own = forward ? k->sparse_scratch(s) : grad_scratch(k, s);
    const bool stats = forward && ew_has_role(query->c, EW_ROLE_OUTPUT_NORM_STATS);
    const size_t bias = forward ? 0 : ew_bias_scratch(s->cout);
    const size_t shared = forward ? 0 : shared_bytes(k, s);
    const size_t mine = shared + ew_thread_scratch_bytes(query->be, own),
                 all = mine > bias ? mine : bias;
    struct ew_kernel out = otherwise;
    out.name = forward ? "zero-skipping" : "zero-skipping gradients";
    out.run = forward ? run_forward : run_backward;
    out.prepare = NULL;
    out.scratch = all > otherwise.scratch ? all : otherwise.scratch;
    if (stats && stats_bytes(k, s) > out.scratch)
        out.scratch = stats_bytes(k, s);
    out.state = ew_align_up(sizeof(struct state)) + otherwise.state;
    return out;
}
