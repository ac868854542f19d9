/* SPDX-License-Identifier: Apache-2.0 */
/* Addition on the DPU: both operands at the coarser position with two guard bits. */
#include "op/dpu.h"

static ew_err forward(const struct ew_call *c)
{
    const struct ew_dpu_eltwise_attr *a = c->attr;
    const int least = (int)(a->a < a->b ? a->a : a->b);
    int8_t *y = c->out[0]->data;
    for (int64_t i = 0; i < ew_tensor_count(c->out[0]); i++) {
        const int64_t sum = ew_dpu_align(ew_tensor_get_int(c->in[0], i), (int)a->a, least) +
                            ew_dpu_align(ew_dpu_second(c, i), (int)a->b, least);
        y[i] = ew_dpu_store(sum, least + EW_DPU_GUARD - (int)a->y, &a->clamp);
    }
    return EW_OK;
}

const struct ew_op ew_op_dpu_add = {
    .name = "dpu_add",
    .help = "sum of two int8 tensors by the DPU's rules",
    EW_DPU_ELTWISE_OP,
    .forward = forward,
};
