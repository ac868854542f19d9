/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions: forward by the best of three methods, and both gradients. */
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/conv_pass.h"
#include "backend/cpu/share.h"
#include "op/conv.h"

/* ---- Forward ---- */

/* The packed filters follow the state at the next cache line. */
static void *behind(void *state, size_t bytes)
{
    return (char *)state + ew_align_up(bytes);
}

static ew_err prepare(const struct ew_call *c, enum ew_conv_method method)
{
    const struct ew_conv_attr *a = c->attr;
    struct ew_conv_pass *p = c->state;
    struct ew_conv_sizes s;
    EW_TRY(ew_conv_resolve(c, &s));
    p->method = method;
    p->packed = behind(p, sizeof(*p));
    ew_conv_shape_of(&s, &p->conv.shape);
    p->conv.end = (struct ew_epilogue){.add_after = a->end.add_after,
                                       .act = (enum ew_act)a->end.act,
                                       .lo = (float)a->end.lo,
                                       .hi = (float)a->end.hi};
    ew_conv_pack(c->be->isa, p, c->in[1]->data);
    return EW_OK;
}

static ew_err prepare_gemm(const struct ew_call *c)
{
    return prepare(c, EW_CONV_GEMM);
}

static ew_err prepare_winograd(const struct ew_call *c)
{
    return prepare(c, EW_CONV_WINOGRAD);
}

static ew_err prepare_depthwise(const struct ew_call *c)
{
    return prepare(c, EW_CONV_DEPTHWISE);
}

static ew_err run(const struct ew_call *c)
{
    struct ew_conv_pass *p = c->state;
    p->conv.x = c->in[0]->data;
    p->conv.y = c->out[0]->data;
    p->conv.end.bias = c->n_in > 2 && c->in[2] ? c->in[2]->data : NULL;
    p->conv.end.add = c->n_in > 3 && c->in[3] ? c->in[3]->data : NULL;
    if (c->train) /* the weights have moved since the last step */
        ew_conv_pack(c->be->isa, p, c->in[1]->data);
    ew_conv_pass_run(c, p);
    return EW_OK;
}

static struct ew_kernel forward_kernel(const struct ew_backend *be, enum ew_conv_method m,
                                       const struct ew_conv_shape *s)
{
    static const struct ew_kernel by_method[] = {
        [EW_CONV_GEMM] = {.name = "conv gemm", .prepare = prepare_gemm},
        [EW_CONV_WINOGRAD] = {.name = "conv winograd", .prepare = prepare_winograd},
        [EW_CONV_DEPTHWISE] = {.name = "conv depthwise", .prepare = prepare_depthwise},
    };
    struct ew_kernel k = by_method[m];
    k.run = run;
    k.scratch = ew_share_scratch(be, ew_conv_scratch_bytes(be->isa, m, s));
    k.state = ew_align_up(sizeof(struct ew_conv_pass)) + ew_conv_packed_bytes(be->isa, m, s);
    return k;
}

/* Winograd pays from some channels on, and where the 4x4 tiles are not mostly border. */
static bool winograd_pays(const struct ew_conv_shape *s)
{
    return s->cin >= 16 && s->cout >= 16 && s->axis[1].out >= 6 && s->axis[2].out >= 6;
}

static int offer_forward(const struct ew_backend *be, const struct ew_conv_shape *s,
                         struct ew_kernel *out)
{
    int n = 0;
    if (ew_conv_fits(be->isa, EW_CONV_DEPTHWISE, s))
        out[n++] = forward_kernel(be, EW_CONV_DEPTHWISE, s);
    if (ew_conv_fits(be->isa, EW_CONV_WINOGRAD, s) && winograd_pays(s))
        out[n++] = forward_kernel(be, EW_CONV_WINOGRAD, s);
    out[n++] = forward_kernel(be, EW_CONV_GEMM, s);
    return n;
}

/* ---- Backward ---- */

struct backward {
    struct ew_conv_pass data;
    struct ew_conv_filter filter; /* its partial sums follow the packed filters of `data` */
};

static ew_err prepare_backward(const struct ew_call *c)
{
    const struct ew_kernels *k = c->be->isa;
    struct backward *b = c->state;
    struct ew_conv_sizes s;
    EW_TRY(ew_conv_resolve(c, &s));
    *b = (struct backward){.data = {.method = EW_CONV_DATA, .packed = behind(b, sizeof(*b))}};
    ew_conv_shape_of(&s, &b->data.conv.shape);
    b->filter.shape = b->data.conv.shape;
    b->filter.add = true;
    b->filter.partial =
        behind(b->data.packed, ew_conv_packed_bytes(k, EW_CONV_DATA, &b->data.conv.shape));
    return EW_OK;
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
    ew_share_run(c, k->conv_filter_tiles(&b->filter.shape), filter_tiles);
    ew_share_run(c, k->conv_filter_sum_tiles(&b->filter.shape), filter_sum);
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
        b->data.conv.end.add = c->din[0]->data;
        ew_conv_pass_run(c, &b->data);
    }
    if (c->din[1])
        run_filter(c);
    if (c->n_in > 2 && c->din[2])
        ew_bias_grad(c->dout[0], c->din[2]);
    return EW_OK;
}

static int offer_backward(const struct ew_backend *be, const struct ew_conv_shape *s,
                          struct ew_kernel *out)
{
    const struct ew_kernels *k = be->isa;
    const size_t data = ew_conv_scratch_bytes(k, EW_CONV_DATA, s);
    const size_t filter = k->conv_filter_scratch(s);
    out[0] = (struct ew_kernel){.name = "conv gradients",
                                .run = run_backward,
                                .prepare = prepare_backward,
                                .scratch = ew_share_scratch(be, data > filter ? data : filter),
                                .state = ew_align_up(sizeof(struct backward)) +
                                         ew_align_up(ew_conv_packed_bytes(k, EW_CONV_DATA, s)) +
                                         k->conv_filter_partial(s) * sizeof(float)};
    return 1;
}

static int offer(const struct ew_backend *be, enum ew_phase phase, const struct ew_call *c,
                 struct ew_kernel *out)
{
    struct ew_conv_sizes sizes;
    struct ew_conv_shape s;
    if (c->in[0]->dtype != EW_F32 || ew_conv_resolve(c, &sizes) != EW_OK ||
        ew_tensor_count(c->in[0]) >= INT32_MAX)
        return 0;
    ew_conv_shape_of(&sizes, &s);
    return phase == EW_PHASE_FORWARD ? offer_forward(be, &s, out) : offer_backward(be, &s, out);
}

const struct ew_row ew_row_conv = {.op = "conv", .offer = offer};
