/* SPDX-License-Identifier: Apache-2.0 */
/* Dense layers: catalogue/dense_kernels.c has the list. */
#include "backend/cpu/catalogue/catalogue.h"
#include "graph/ops.h"

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    return ew_catalogue_offer(&ew_dense_kernels[query->phase == EW_PHASE_BACKWARD], query, out);
}

const struct ew_kernel_family ew_offer_dense = {.ops = EW_FAMILY_OPS(&ew_op_gemm), .offer = offer};
