/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of everything that is a convolution to the kernels. */
#include "backend/cpu/conv_step.h"

#include "backend/cpu/share.h"

/* The next cache line after `bytes` of what `p` points to. */
static void *behind(void *p, size_t bytes)
{
    return (char *)p + ew_align_up(bytes);
}

/* ---- Forward: state is a pass, then its packed filters ---- */

void ew_conv_forward_prepare(const struct ew_call *c, enum ew_conv_method m,
                             const struct ew_conv_shape *s, const struct ew_epilogue_attr *end)
{
    struct ew_conv_pass *p = c->state;
    *p = (struct ew_conv_pass){.method = m, .conv = {.shape = *s}, .packed = behind(p, sizeof(*p))};
    if (end)
        p->conv.end = (struct ew_epilogue){.add_after = end->add_after,
                                           .act = (enum ew_act)end->act,
                                           .lo = (float)end->lo,
                                           .hi = (float)end->hi};
    if (!c->train && c->in[1]->data)
        ew_conv_pack(c->be->isa, p, c->in[1]->data);
}

static const float *input_or_null(const struct ew_call *c, int i)
{
    return i < c->n_in && c->in[i] ? c->in[i]->data : NULL;
}

static ew_err run_forward(const struct ew_call *c)
{
    struct ew_conv_pass *p = c->state;
    p->conv.x = c->in[0]->data;
    p->conv.y = c->out[0]->data;
    p->conv.end.bias = input_or_null(c, 2);
    p->conv.end.add = input_or_null(c, 3);
    ew_conv_pass_run(c, p);
    return EW_OK;
}

/* Filters that change from run to run: those that are trained, or computed. */
static ew_err run_packing(const struct ew_call *c)
{
    const struct ew_conv_pass *p = c->state;
    ew_conv_pack(c->be->isa, p, c->in[1]->data);
    return run_forward(c);
}

struct ew_kernel ew_conv_forward_kernel(const struct ew_call *c, enum ew_conv_method m,
                                        const struct ew_conv_shape *s)
{
    const struct ew_backend *be = c->be;
    const bool fixed = c->in[1]->data && !c->train; /* activations have no memory yet */
    static const char *const names[] = {[EW_CONV_GEMM] = "gemm",
                                        [EW_CONV_WINOGRAD] = "winograd",
                                        [EW_CONV_DEPTHWISE] = "depthwise"};
    return (struct ew_kernel){.name = names[m],
                              .run = fixed ? run_forward : run_packing,
                              .scratch = ew_share_scratch(be, ew_conv_scratch_bytes(be->isa, m, s)),
                              .state = ew_align_up(sizeof(struct ew_conv_pass)) +
                                       ew_conv_packed_bytes(be->isa, m, s)};
}

/* ---- Backward ---- */

struct backward {
    struct ew_conv_pass data;
    struct ew_conv_filter filter; /* its partial sums follow the packed filters of `data` */
};

void ew_conv_backward_prepare(const struct ew_call *c, const struct ew_conv_shape *s)
{
    struct backward *b = c->state;
    *b = (struct backward){
        .data = {.method = EW_CONV_DATA, .conv = {.shape = *s}, .packed = behind(b, sizeof(*b))},
        .filter = {.shape = *s}};
    b->filter.partial = behind(b->data.packed, ew_conv_packed_bytes(c->be->isa, EW_CONV_DATA, s));
}

static void filter_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct ew_kernels *k = c->be->isa;
    const struct backward *b = c->state;
    k->conv_filter_run(&b->filter, begin, end,
                       ew_worker_scratch(c, k->conv_filter_scratch(&b->filter.shape), worker));
}

static void filter_sum(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct backward *b = c->state;
    c->be->isa->conv_filter_sum(&b->filter, begin, end);
}

static void run_filter(const struct ew_call *c)
{
    const struct ew_kernels *k = c->be->isa;
    struct backward *b = c->state;
    b->filter.x = c->in[0]->data;
    b->filter.dy = c->dout[0]->data;
    b->filter.dw = c->din[1]->data;
    b->filter.add = !(c->fresh & 2);
    ew_share_run(c, k->conv_filter_tiles(&b->filter.shape), filter_tiles);
    ew_share_run(c, k->conv_filter_sum_tiles(&b->filter.shape), filter_sum);
}

static void bias_channels(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const int64_t channels = ew_tensor_count(c->din[2]);
    const struct ew_column_sums s = {.rows = ew_tensor_count(c->dout[0]) / channels,
                                     .channels = channels,
                                     .x = c->dout[0]->data,
                                     .out = c->din[2]->data,
                                     .add = !(c->fresh & 4)};
    c->be->isa->column_sums(&s, begin, end);
}

static void run_bias(const struct ew_call *c)
{
    ew_share_run(c, ew_tensor_count(c->din[2]), bias_channels);
}

static ew_err run_backward(const struct ew_call *c)
{
    struct backward *b = c->state;
    if (!c->dout[0])
        return EW_OK;
    if (c->din[0]) {
        ew_conv_pack(c->be->isa, &b->data, c->in[1]->data);
        b->data.conv.x = c->dout[0]->data;
        b->data.conv.y = c->din[0]->data;
        b->data.conv.end.add = c->fresh & 1 ? NULL : c->din[0]->data;
        ew_conv_pass_run(c, &b->data);
    }
    if (c->din[1])
        run_filter(c);
    if (c->n_in > 2 && c->din[2])
        run_bias(c);
    return EW_OK;
}

struct ew_kernel ew_conv_backward_kernel(const struct ew_backend *be, const struct ew_conv_shape *s)
{
    const struct ew_kernels *k = be->isa;
    const size_t data = ew_conv_scratch_bytes(k, EW_CONV_DATA, s);
    const size_t filter = k->conv_filter_scratch(s);
    return (struct ew_kernel){.name = "gradients",
                              .run = run_backward,
                              .scratch = ew_share_scratch(be, data > filter ? data : filter),
                              .state = ew_align_up(sizeof(struct backward)) +
                                       ew_align_up(ew_conv_packed_bytes(k, EW_CONV_DATA, s)) +
                                       k->conv_filter_partial(s) * sizeof(float)};
}
