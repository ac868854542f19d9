/* SPDX-License-Identifier: Apache-2.0 */
/* dpu_conv by the CPU's int8 kernels (qlinear_conv), bit for bit.
 *
 * Those compute round((float)sum * ratio) + zero with ties to even; the DPU rounds ties up.  With
 *     sum' = sum + 128 * 2^shift,  ratio = 2^-shift * (1 + 2^-23),  zero = -128
 * all results in range are positive, and the product is one or two units in the last place above
 * sum' / 2^shift, which takes every tie up.  The excess is at most 2^-15 (an ulp of numbers below
 * 256 is 2^-16); other sums are at least 2^-shift below a tie, so they are not affected as long as
 * shift <= 14.  Sums that float32 cannot represent (2^24 and up) saturate in any case. */
#include <math.h>
#include <stdlib.h>

#include "backend/cpu/cpu_offer.h"
#include "backend/dpu/dpu_backend.h"
#include "graph/ops.h"
#include "op/dpu.h"
#include "op/qlinear.h"

#define SHIFT_MOST 14
#define SLOTS      (EW_QCONV_BIAS + 1)

/* The qlinear_conv call that computes a dpu_conv; in the step's state. */
struct inner {
    struct ew_kernel kernel;
    struct ew_call call;
    struct ew_qconv_attr attr;
    struct ew_tensor t[SLOTS], y;
    struct ew_tensor *slots[SLOTS + 1];
    float ratio, one;
    int8_t x_zero, y_zero;
    int32_t bias[]; /* per filter */
};

static size_t inner_bytes(const struct ew_call *c)
{
    return ew_align_up(sizeof(struct inner) +
                       (size_t)c->in[EW_DPU_CONV_W]->shape.dim[0] * sizeof(int32_t));
}

static void set_scalar(struct inner *in, int slot, enum ew_dtype dtype, void *data)
{
    in->t[slot] = (struct ew_tensor){.dtype = dtype, .data = data};
    in->slots[slot] = &in->t[slot];
}

static void set_bias(struct inner *in, const struct ew_call *c)
{
    const struct ew_dpu_conv_attr *a = c->attr;
    const struct ew_tensor *bias = ew_call_in(c, EW_DPU_CONV_BIAS);
    const int64_t filters = c->in[EW_DPU_CONV_W]->shape.dim[0];
    for (int64_t f = 0; f < filters; f++) {
        const int32_t b = bias ? ((const int8_t *)bias->data)[f] * (1 << a->bias_shift) : 0;
        in->bias[f] = b + 128 * (1 << a->shift);
    }
    in->t[EW_QCONV_BIAS] =
        (struct ew_tensor){.dtype = EW_S32, .shape = {1, {filters}}, .data = in->bias};
    in->slots[EW_QCONV_BIAS] = &in->t[EW_QCONV_BIAS];
}

/* Pointers that may change between calls: tensors' data, scratch, packed weights. */
static void bind(struct inner *in, const struct ew_call *c)
{
    in->t[EW_QCONV_X] = *c->in[EW_DPU_CONV_X];
    in->t[EW_QCONV_W] = *c->in[EW_DPU_CONV_W];
    in->y = *c->out[0];
    in->call.scratch = c->scratch;
    in->call.packed = c->packed;
    in->call.state = (char *)in + inner_bytes(c);
}

static void make(struct inner *in, const struct ew_call *c, const struct ew_backend *be)
{
    const struct ew_dpu_conv_attr *a = c->attr;
    *in = (struct inner){.one = 1, .y_zero = -128};
    in->ratio = nextafterf(ldexpf(1, -(int)a->shift), INFINITY);
    in->attr = (struct ew_qconv_attr){.conv = a->conv, .clamp = a->clamp};
    in->slots[EW_QCONV_X] = &in->t[EW_QCONV_X];
    in->slots[EW_QCONV_W] = &in->t[EW_QCONV_W];
    set_scalar(in, EW_QCONV_X_SCALE, EW_F32, &in->ratio);
    set_scalar(in, EW_QCONV_X_ZERO, EW_S8, &in->x_zero);
    set_scalar(in, EW_QCONV_W_SCALE, EW_F32, &in->one);
    set_scalar(in, EW_QCONV_Y_SCALE, EW_F32, &in->one);
    set_scalar(in, EW_QCONV_Y_ZERO, EW_S8, &in->y_zero);
    set_bias(in, c);
    in->slots[SLOTS] = &in->y;
    in->call = (struct ew_call){.name = c->name,
                                .op = &ew_op_qlinear_conv,
                                .attr = &in->attr,
                                .n_in = SLOTS,
                                .n_out = 1,
                                .in = in->slots,
                                .out = in->slots + SLOTS,
                                .be = be};
    bind(in, c);
}

/* Picks the CPU's best kernel; false if there is only the reference. */
static bool choose(struct inner *in)
{
    struct ew_kernel offers[EW_OFFERS];
    const struct ew_kernel_query query = {in->call.be, in->call.op, EW_PHASE_FORWARD, &in->call};
    const int n = ew_cpu_offer(&query, offers);
    in->kernel = offers[0];
    return n > 1;
}

static ew_err prepare(const struct ew_call *c)
{
    struct inner *in = c->state;
    make(in, c, c->be);
    EW_CHECK(choose(in), EW_ERR_INTERNAL, "the kernel that was offered is gone");
    return in->kernel.prepare ? in->kernel.prepare(&in->call) : EW_OK;
}

static ew_err pack(const struct ew_call *c)
{
    struct inner *in = c->state;
    bind(in, c);
    return in->kernel.pack(&in->call);
}

static ew_err run(const struct ew_call *c)
{
    struct inner *in = c->state;
    bind(in, c);
    return in->kernel.run(&in->call);
}

int ew_dpu_offer_conv(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    const struct ew_dpu_conv_attr *a = c->attr;
    const struct ew_tensor *bias = ew_call_in(c, EW_DPU_CONV_BIAS);
    if (a->leaky || a->shift > SHIFT_MOST || !c->in[EW_DPU_CONV_W]->data || (bias && !bias->data))
        return 0;
    EW_CLEANUP(ew_free_ptr) struct inner *in = calloc(1, inner_bytes(c));
    if (!in)
        return 0;
    make(in, c, query->be);
    if (!choose(in))
        return 0;
    out[0] =
        (struct ew_kernel){.name = "dpu conv",
                           .run = run,
                           .scratch = in->kernel.scratch,
                           .state = inner_bytes(c) + in->kernel.state,
                           .packed = in->kernel.packed,
                           .packs = in->kernel.packs >> EW_QCONV_W & 1 ? 1 << EW_DPU_CONV_W : 0,
                           .prepare = prepare,
                           .pack = in->kernel.pack ? pack : NULL};
    return 1;
}
