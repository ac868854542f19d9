/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product used by gemm and matmul, forward and backward. */
#ifndef EW_OP_PRODUCT_H
#define EW_OP_PRODUCT_H

#include "op/types.h"

/* A matrix inside a tensor: element (i, j) is at start + i * row + j * col. */
struct ew_matrix {
    const struct ew_tensor *t;
    int64_t start, row, col;
};

struct ew_product {
    int64_t m, n, k;
    struct ew_matrix a, b; /* [m, k] and [k, n] */
    struct ew_tensor *out; /* [m, n], row-major from out_start */
    int64_t out_start;
    double alpha;
};

/* Two tensors as batches of matrices, as in NumPy's matmul: a vector is a row on the left and a
 * column on the right; batch axes broadcast. */
struct ew_stacks {
    struct ew_shape batch; /* of the output, without its matrix axes */
    struct ew_shape out;
    int64_t stride_a[EW_MAX_RANK], stride_b[EW_MAX_RANK]; /* in matrices, along `batch` */
    int64_t m, k, n;
};

ew_err ew_stacks_of(const struct ew_tensor *a, const struct ew_tensor *b, struct ew_stacks *out);
/* Indices of the matrices of A and B for matrix `i` of the output. */
void ew_stacks_locate(const struct ew_stacks *s, int64_t i, int64_t *a, int64_t *b);
void ew_stacks_cost(const struct ew_stacks *s, struct ew_cost *out);

/* out += alpha A B.  Integers wrap, with alpha 1. */
void ew_product_add(const struct ew_product *p);

#endif
