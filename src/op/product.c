/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product used by gemm and matmul, and batches of matrices. */
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

/* ---- Stacks of matrices ---- */

static struct ew_shape batch_of(const struct ew_shape *s)
{
    struct ew_shape r = *s;
    r.rank = s->rank > 2 ? s->rank - 2 : 0;
    return r;
}

ew_err ew_stacks_of(const struct ew_tensor *ta, const struct ew_tensor *tb, struct ew_stacks *out)
{
    const struct ew_shape *a = &ta->shape, *b = &tb->shape;
    char text_a[EW_SHAPE_TEXT], text_b[EW_SHAPE_TEXT];
    EW_CHECK(a->rank >= 1 && b->rank >= 1, EW_ERR_SHAPE, "matmul does not take scalars");
    const struct ew_shape ba = batch_of(a), bb = batch_of(b);
    out->m = a->rank > 1 ? a->dim[a->rank - 2] : 1;
    out->k = a->dim[a->rank - 1];
    out->n = b->rank > 1 ? b->dim[b->rank - 1] : 1;
    EW_CHECK(b->dim[b->rank > 1 ? b->rank - 2 : 0] == out->k, EW_ERR_SHAPE,
             "matrices %s and %s do not fit", ew_shape_text(a, text_a), ew_shape_text(b, text_b));
    EW_TRY(ew_shape_broadcast(&ba, &bb, &out->batch));
    ew_shape_strides(&ba, &out->batch, out->stride_a);
    ew_shape_strides(&bb, &out->batch, out->stride_b);
    out->out = out->batch;
    if (a->rank > 1)
        out->out.dim[out->out.rank++] = out->m;
    if (b->rank > 1)
        out->out.dim[out->out.rank++] = out->n;
    return EW_OK;
}

void ew_stacks_locate(const struct ew_stacks *s, int64_t i, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int axis = s->batch.rank - 1; axis >= 0; axis--) {
        const int64_t at = i % s->batch.dim[axis];
        i /= s->batch.dim[axis];
        *a += at * s->stride_a[axis];
        *b += at * s->stride_b[axis];
    }
}

void ew_stacks_cost(const struct ew_stacks *s, struct ew_cost *out)
{
    const int64_t macs = ew_shape_count(&s->batch) * s->m * s->k * s->n;
    out->macs += macs;
    out->thop_macs += macs;
    out->flops += 2 * macs;
}
