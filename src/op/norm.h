/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation: attributes that other modules read. */
#ifndef EW_OP_NORM_H
#define EW_OP_NORM_H

#include "graph/op.h"

/* in: x [N, d..., C], then scale, bias, mean and variance, [C] each. */
struct ew_batch_norm_attr {
    double eps;         /* added to the variance */
    double momentum;    /* share of the old running statistics that is kept, as in ONNX: torch's
                         * momentum m is 1 - m here, so its default 0.1 is 0.9 */
    bool training_mode; /* ONNX's: batch statistics, out[1] and out[2] are the running ones */
};

#endif
