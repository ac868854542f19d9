/* SPDX-License-Identifier: Apache-2.0 */
/* Batched products of 8-bit matrices with zero points, accumulated in wrapping int32. */
#ifndef EW_OP_INT_MATMUL_H
#define EW_OP_INT_MATMUL_H

#include "op/product.h"
#include "op/quant.h"

struct ew_int_matmul {
    int a, a_zero, b, b_zero; /* input slots; zero points: scalar, or per row of A and column of
                               * B */
    struct ew_stacks s;
};

/* Sets s; fails if shapes or types do not fit. */
ew_err ew_int_matmul_resolve(const struct ew_call *c, struct ew_int_matmul *m);
/* Bytes: both inputs as int32, and one row of sums. */
size_t ew_int_matmul_scratch(const struct ew_call *c, int a, int b);
/* Fills the scratch, from which `row` (over all rows of the output) computes n sums. */
void ew_int_matmul_begin(const struct ew_call *c, const struct ew_int_matmul *m);
const int32_t *ew_int_matmul_row(const struct ew_call *c, const struct ew_int_matmul *m,
                                 int64_t row);

#endif
