/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product under gemm and matmul, forward and backward. */
#ifndef EW_OP_PRODUCT_H
#define EW_OP_PRODUCT_H

#include "op/types.h"

/* A matrix inside a tensor: element (i, j) is at start + i * row + j * col. */
struct ew_matrix {
    const struct ew_tensor *t;
    int64_t start, row, col;
};

static inline struct ew_matrix ew_matrix_transposed(struct ew_matrix m)
{
    return (struct ew_matrix){m.t, m.start, m.col, m.row};
}

struct ew_product {
    int64_t m, n, k;
    struct ew_matrix a, b; /* [m, k] and [k, n] */
    struct ew_tensor *out; /* [m, n], row-major from out_start */
    int64_t out_start;
    double alpha;
};

/* out += alpha A B.  Integers are exact modulo their size when alpha is 1. */
void ew_product_add(const struct ew_product *p);

#endif
