/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearMul of ONNX Runtime: a * b of quantised tensors, quantised again. */
#include "op/qlinear.h"

/* Products of two are below 2^17: exact. */
static int64_t multiply(const struct ew_quant_binary *q, int64_t a, int64_t b)
{
    return ew_quant_sum((int32_t)(a * b), q->a_ratio, q->zero, q->dtype);
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_quant_binary q = ew_qmul_ratios(c);
    return ew_qbinary_forward(c, &q, multiply);
}

const struct ew_op ew_op_qlinear_mul = {
    .name = "qlinear_mul",
    .help = "a * b of quantised tensors, quantised again",
    EW_QBINARY_OP("QLinearMul"),
    .forward = forward,
};
