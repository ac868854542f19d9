/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit convolutions: catalogue/int8_kernels.c has the list. */
#include "backend/cpu/catalogue/catalogue.h"
#include "graph/ops.h"

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    return ew_catalogue_offer(&ew_int8_conv_kernels, query, out);
}

const struct ew_kernel_family ew_offer_int8_conv = {.ops = EW_FAMILY_OPS(&ew_op_qlinear_conv),
                                                    .offer = offer};
