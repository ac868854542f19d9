/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplication on the DPU, rounded once. */
#include "op/dpu.h"

static ew_err forward(const struct ew_call *c)
{
    const struct ew_dpu_eltwise_attr *a = c->attr;
    int8_t *y = c->out[0]->data;
    for (int64_t i = 0; i < ew_tensor_count(c->out[0]); i++) {
        const int64_t product = ew_tensor_get_int(c->in[0], i) * ew_dpu_second(c, i);
        y[i] = ew_dpu_store(product, (int)(a->a + a->b - a->y), &a->clamp);
    }
    return EW_OK;
}

const struct ew_op ew_op_dpu_mul = {
    .name = "dpu_mul",
    .help = "product of two int8 tensors by the DPU's rules",
    EW_DPU_ELTWISE_OP,
    .forward = forward,
};
