/* SPDX-License-Identifier: Apache-2.0 */
/* The windows of all pooling operators. */
#include "backend/cpu/step/pool_shape.h"

#include "graph/ops.h"
#include "op/pooling.h"

static bool is(const struct ew_call *c, const struct ew_op *op)
{
    return c->op == op;
}

/* Adaptive windows of equal size are sliding windows; false if sizes differ. */
static bool make_even(struct ew_window *w)
{
    for (int i = 0; w->adaptive && i < EW_WINDOW_DIMS; i++) {
        if (w->in[i] % w->out[i])
            return false;
        w->kernel[i] = w->stride[i] = w->in[i] / w->out[i];
        w->dilation[i] = 1;
        w->pad[i] = w->pad_end[i] = 0;
    }
    return true;
}

/* True if a last window extends beyond the padding (ceil_mode): its average has another divisor. */
static bool reaches_beyond(const struct ew_window *w)
{
    for (int i = 0; i < EW_WINDOW_DIMS; i++) {
        const int64_t end =
            (w->out[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
        if (end > w->in[i] + w->pad[i] + w->pad_end[i])
            return true;
    }
    return false;
}

bool ew_pool_shape_of(const struct ew_call *c, struct ew_conv_shape *out, bool *max,
                      bool *count_pads)
{
    struct ew_window w;
    const bool average = is(c, &ew_op_average_pool) || is(c, &ew_op_qlinear_average_pool);
    const bool sliding = is(c, &ew_op_max_pool) || average;
    const bool adaptive = is(c, &ew_op_adaptive_avg_pool);
    const ew_err e = sliding    ? ew_pool_resolve(c, &w)
                     : adaptive ? ew_adaptive_resolve(c, &w)
                                : ew_global_resolve(c, &w);
    if (e != EW_OK || !make_even(&w))
        return false;
    const struct ew_pool_attr *a = c->attr;
    *max = is(c, &ew_op_max_pool) || is(c, &ew_op_global_max_pool);
    *count_pads = average && a->count_include_pad;
    if (*count_pads && reaches_beyond(&w))
        return false;
    *out = (struct ew_conv_shape){.batch = (int32_t)w.batch,
                                  .groups = (int32_t)w.channels,
                                  .cin = (int32_t)w.channels,
                                  .cout = (int32_t)w.channels};
    for (int i = 0; i < EW_WINDOW_DIMS; i++)
        out->axis[i] = (struct ew_conv_axis){.in = (int32_t)w.in[i],
                                             .out = (int32_t)w.out[i],
                                             .taps = (int32_t)w.kernel[i],
                                             .stride = (int32_t)w.stride[i],
                                             .dilation = (int32_t)w.dilation[i],
                                             .pad = (int32_t)w.pad[i]};
    return true;
}
