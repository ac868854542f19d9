/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of operators that are the dgrad of a convolution. */
#include "backend/cpu/step/adjoint_step.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/bias_grad.h"
#include "backend/cpu/step/conv_step.h"

static bool has_bias(const struct ew_call *c)
{
    return c->n_in > 2 && c->in[2];
}

/* ---- Forward ---- */

/* Dgrad kernels other than GEMM and Winograd support no bias. */
static enum ew_conv_method forward_method(const struct ew_call *c, const struct ew_conv_shape *s,
                                          struct ew_conv_shape *shape)
{
    const enum ew_conv_method m = ew_conv_dgrad_method(ew_cpu(c->be)->isa, s, shape);
    if (m == EW_CONV_DGRAD || m == EW_CONV_WINOGRAD_DGRAD || !has_bias(c))
        return m;
    *shape = *s;
    return EW_CONV_DGRAD;
}

struct ew_kernel ew_adjoint_forward_kernel(const struct ew_call *c, const struct ew_conv_shape *s,
                                           const char *gemm)
{
    struct ew_conv_shape shape;
    const enum ew_conv_method m = forward_method(c, s, &shape);
    struct ew_kernel k = ew_conv_forward_kernel(c, m, &shape);
    if (m == EW_CONV_DGRAD)
        k.name = gemm;
    return k;
}

void ew_adjoint_forward_prepare(const struct ew_call *c, const struct ew_conv_shape *s)
{
    struct ew_conv_shape shape;
    const enum ew_conv_method m = forward_method(c, s, &shape);
    ew_conv_forward_prepare(c, m, &shape, NULL);
}

/* ---- The parts ---- */

size_t ew_adjoint_pass_scratch(const struct ew_kernels *k, enum ew_conv_method m,
                               const struct ew_conv_shape *s, int threads)
{
    return ew_align_up(ew_conv_packed_bytes(k, m, s)) +
           (size_t)threads * ew_align_up(ew_conv_scratch_bytes(k, m, s));
}

void ew_adjoint_pass_run(const struct ew_call *c, const struct ew_adjoint_pass *p)
{
    struct ew_call rest = *c;
    struct ew_conv_pass pass = {
        .method = p->m, .conv = {.shape = *p->s, .x = p->x, .y = p->y}, .packed = c->scratch};
    pass.conv.end.add = p->add ? p->y : NULL;
    rest.scratch =
        (char *)c->scratch + ew_align_up(ew_conv_packed_bytes(ew_cpu(c->be)->isa, p->m, p->s));
    ew_conv_pack(c->be, &pass, p->w);
    ew_conv_pass_run(&rest, &pass);
}

struct filter_work {
    const struct ew_kernels *k;
    const struct ew_conv_wgrad *f;
    void *scratch;
    size_t each; /* bytes for one thread */
};

static void filter_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct filter_work *w = ctx;
    w->k->conv_wgrad_run(w->f, begin, end, ew_thread_scratch_at(w->scratch, w->each, worker));
}

static void filter_sum(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct filter_work *w = ctx;
    w->k->conv_wgrad_sum(w->f, begin, end);
}

size_t ew_adjoint_filter_scratch(const struct ew_kernels *k, const struct ew_conv_shape *s,
                                 int threads)
{
    return ew_float_bytes(k->conv_wgrad_partial(s)) +
           (size_t)threads * ew_align_up(k->conv_wgrad_scratch(s));
}

void ew_adjoint_filter_run(const struct ew_call *c, struct ew_conv_wgrad *f)
{
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    f->partial = c->scratch;
    struct filter_work w = {k, f,
                            (char *)c->scratch + ew_float_bytes(k->conv_wgrad_partial(&f->shape)),
                            k->conv_wgrad_scratch(&f->shape)};
    ew_pool_run(ew_cpu(c->be)->pool, k->conv_wgrad_tiles(&f->shape), filter_tiles, &w);
    ew_pool_run(ew_cpu(c->be)->pool, k->conv_wgrad_sum_tiles(&f->shape), filter_sum, &w);
}

/* ---- Backward: state is the shape ---- */

static enum ew_conv_method data_method(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    if (ew_conv_fits(k, EW_CONV_DEPTHWISE, s))
        return EW_CONV_DEPTHWISE;
    if (ew_conv_fits(k, EW_CONV_WINOGRAD, s) && k->winograd_pays(s, true))
        return EW_CONV_WINOGRAD;
    return EW_CONV_GEMM;
}

static ew_err run_backward(const struct ew_call *c)
{
    const struct ew_conv_shape *s = c->state;
    if (!c->dout[0])
        return EW_OK;
    if (has_bias(c) && c->din[2])
        ew_bias_gradient(c, NULL);
    if (c->din[0])
        ew_adjoint_pass_run(c, &(struct ew_adjoint_pass){.m = data_method(ew_cpu(c->be)->isa, s),
                                                         .s = s,
                                                         .x = c->dout[0]->data,
                                                         .w = c->in[1]->data,
                                                         .y = c->din[0]->data,
                                                         .add = !(c->fresh & 1)});
    if (c->din[1])
        ew_adjoint_filter_run(c, &(struct ew_conv_wgrad){.shape = *s,
                                                         .x = c->dout[0]->data,
                                                         .dy = c->in[0]->data,
                                                         .dw = c->din[1]->data,
                                                         .add = !(c->fresh & 2)});
    return EW_OK;
}

struct ew_kernel ew_adjoint_backward_kernel(const struct ew_backend *be,
                                            const struct ew_conv_shape *s)
{
    const struct ew_kernels *k = ew_cpu(be)->isa;
    const int threads = ew_pool_threads(ew_cpu(be)->pool);
    const size_t data = ew_adjoint_pass_scratch(k, data_method(k, s), s, threads);
    const size_t filter = ew_adjoint_filter_scratch(k, s, threads), bias = ew_bias_scratch(s->cin);
    const size_t most = data > filter ? data : filter;
    return (struct ew_kernel){.name = "transposed implicit gemm",
                              .run = run_backward,
                              .fresh = true,
                              .scratch = most > bias ? most : bias,
                              .state = sizeof(*s)};
}

void ew_adjoint_backward_prepare(const struct ew_call *c, const struct ew_conv_shape *s)
{
    *(struct ew_conv_shape *)c->state = *s;
}
