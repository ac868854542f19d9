/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product for one element type; included by product.c through op/each_float.h. */

/* One row of the output where rows of B are contiguous: the inner loop runs along them. */
static void R(product_row)(const struct ew_product *p, const T *a, const T *b, T *out)
{
    for (int64_t k = 0; k < p->k; k++) {
        const T x = (T)p->alpha * a[k * p->a.col];
        const T *restrict row = b + k * p->b.row;
        for (int64_t j = 0; j < p->n; j++)
            out[j] += x * row[j];
    }
}

static void R(product)(const struct ew_product *p)
{
    const T *a = (const T *)p->a.t->data + p->a.start;
    const T *b = (const T *)p->b.t->data + p->b.start;
    T *out = (T *)p->out->data + p->out_start;
    for (int64_t i = 0; i < p->m; i++, a += p->a.row, out += p->n) {
        if (p->b.col == 1) {
            R(product_row)(p, a, b, out);
            continue;
        }
        for (int64_t j = 0; j < p->n; j++) {
            ACC sum = 0;
            for (int64_t k = 0; k < p->k; k++)
                sum += a[k * p->a.col] * b[k * p->b.row + j * p->b.col];
            out[j] += (T)p->alpha * sum;
        }
    }
}
