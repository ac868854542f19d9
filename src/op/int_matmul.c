/* SPDX-License-Identifier: Apache-2.0 */
/* Batched products of 8-bit matrices: zero points are subtracted first. */
#include "op/int_matmul.h"

#include <string.h>

ew_err ew_int_matmul_resolve(const struct ew_call *c, struct ew_int_matmul *m)
{
    EW_TRY(ew_stacks_of(c->in[m->a], c->in[m->b], &m->s));
    EW_TRY(ew_quant_check(c, m->a, m->a_zero, m->s.m));
    return ew_quant_check(c, m->b, m->b_zero, m->s.n);
}

size_t ew_int_matmul_scratch(const struct ew_call *c, int a, int b)
{
    const struct ew_shape *s = &c->in[b]->shape;
    const int64_t columns = s->rank > 1 ? s->dim[s->rank - 1] : 1;
    const int64_t count = ew_tensor_count(c->in[a]) + ew_tensor_count(c->in[b]) + columns;
    return (size_t)count * sizeof(int32_t);
}

void ew_int_matmul_begin(const struct ew_call *c, const struct ew_int_matmul *m)
{
    int32_t *a = c->scratch, *b = a + ew_tensor_count(c->in[m->a]);
    ew_quant_centre(c->in[m->a], ew_call_in(c, m->a_zero), ew_max_i64(m->s.k, 1), a);
    ew_quant_centre(c->in[m->b], ew_call_in(c, m->b_zero), 1, b);
}

const int32_t *ew_int_matmul_row(const struct ew_call *c, const struct ew_int_matmul *m,
                                 int64_t row)
{
    const struct ew_stacks *s = &m->s;
    int32_t *a = c->scratch, *b = a + ew_tensor_count(c->in[m->a]);
    uint32_t *sum = (uint32_t *)(b + ew_tensor_count(c->in[m->b]));
    int64_t at_a, at_b;
    ew_stacks_locate(s, row / s->m, &at_a, &at_b);
    a += (at_a * s->m + row % s->m) * s->k;
    b += at_b * s->k * s->n;
    memset(sum, 0, (size_t)s->n * sizeof(*sum));
    for (int64_t k = 0; k < s->k; k++)
        for (int64_t j = 0; j < s->n; j++)
            sum[j] += (uint32_t)(a[k] * b[k * s->n + j]);
    return (const int32_t *)sum;
}
