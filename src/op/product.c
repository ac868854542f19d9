/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product under gemm and matmul. */
#include "op/product.h"

#define EW_REF_FILE "op/product_ref.h"
#include "op/each_float.h"

/* float16 and bfloat16: element by element, the sum in double. */
static void product_half(const struct ew_product *p)
{
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < p->k; k++)
                sum += ew_tensor_get(p->a.t, p->a.start + i * p->a.row + k * p->a.col) *
                       ew_tensor_get(p->b.t, p->b.start + k * p->b.row + j * p->b.col);
            const int64_t at = p->out_start + i * p->n + j;
            sum = ew_tensor_get(p->out, at) + p->alpha * sum;
            ew_tensor_store(p->out, at, 1, &sum);
        }
    }
}

/* Integers wrap as in C's unsigned arithmetic. */
static void product_int(const struct ew_product *p)
{
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            uint64_t sum = 0;
            for (int64_t k = 0; k < p->k; k++)
                sum +=
                    (uint64_t)ew_tensor_get_int(p->a.t, p->a.start + i * p->a.row + k * p->a.col) *
                    (uint64_t)ew_tensor_get_int(p->b.t, p->b.start + k * p->b.row + j * p->b.col);
            if (p->alpha < 1 || p->alpha > 1)
                sum = (uint64_t)(int64_t)(p->alpha * (double)(int64_t)sum);
            const int64_t at = p->out_start + i * p->n + j;
            const int64_t y = (int64_t)((uint64_t)ew_tensor_get_int(p->out, at) + sum);
            ew_tensor_store_int(p->out, at, 1, &y);
        }
    }
}

void ew_product_add(const struct ew_product *p)
{
    const enum ew_dtype t = p->out->dtype;
    if (t == EW_F32 || t == EW_F64)
        EW_REF_CALL(product, t, p);
    else if (ew_dtype_is_float(t))
        product_half(p);
    else
        product_int(p);
}
