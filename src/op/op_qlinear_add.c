/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearAdd of ONNX Runtime: a + b of quantised tensors, quantised again. */
#include "op/qlinear.h"

static ew_err forward(const struct ew_call *c)
{
    const struct ew_quant_binary q = ew_qadd_ratios(c);
    return ew_qbinary_forward(c, &q, ew_quant_add);
}

const struct ew_op ew_op_qlinear_add = {
    .name = "qlinear_add",
    .help = "a + b of quantised tensors, quantised again",
    EW_QBINARY_OP("QLinearAdd"),
    .forward = forward,
};
