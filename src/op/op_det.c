/* SPDX-License-Identifier: Apache-2.0 */
/* Det: determinants of square matrices, by Gaussian elimination with pivoting in double. */
#include <math.h>

#include "op/types.h"

static int64_t side(const struct ew_call *c)
{
    return c->in[0]->shape.dim[c->in[0]->shape.rank - 1];
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_shape *s = &c->in[0]->shape;
    EW_TRY(ew_types_check(c, 0, EW_TYPES_FLOAT));
    EW_CHECK(s->rank >= 2 && s->dim[s->rank - 1] == s->dim[s->rank - 2], EW_ERR_SHAPE,
             "the input holds no square matrices");
    c->out[0]->shape = *s;
    c->out[0]->shape.rank -= 2;
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    const int64_t n = side(c);
    out->flops += ew_tensor_count(c->out[0]) * (2 * n * n * n / 3 + n);
}

static size_t scratch(const struct ew_call *c)
{
    return (size_t)(side(c) * side(c)) * sizeof(double);
}

static void swap_rows(double *m, int64_t n, int64_t a, int64_t b)
{
    for (int64_t i = 0; i < n; i++) {
        const double v = m[a * n + i];
        m[a * n + i] = m[b * n + i];
        m[b * n + i] = v;
    }
}

static double determinant(double *m, int64_t n)
{
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(m[i * n + k]) > fabs(m[pivot * n + k]))
                pivot = i;
        if (!(fabs(m[pivot * n + k]) > 0))
            return 0;
        if (pivot != k) {
            swap_rows(m, n, pivot, k);
            det = -det;
        }
        det *= m[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            const double f = m[i * n + k] / m[k * n + k];
            for (int64_t j = k + 1; j < n; j++)
                m[i * n + j] -= f * m[k * n + j];
        }
    }
    return det;
}

static ew_err forward(const struct ew_call *c)
{
    const int64_t n = side(c);
    double *m = c->scratch;
    for (int64_t i = 0; i < ew_tensor_count(c->out[0]); i++) {
        ew_tensor_load(c->in[0], i * n * n, n * n, m);
        const double det = determinant(m, n);
        ew_tensor_store(c->out[0], i, 1, &det);
    }
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "one", .in = {{"4x4"}}, .n_in = 1, .out_shape = ""},
    {.name = "many", .in = {{"2x3x2x2"}}, .n_in = 1, .out_shape = "2x3"},
    {.name = "empty", .in = {{"2x0x0"}}, .n_in = 1, .out_shape = "2"},
};

const struct ew_op ew_op_det = {
    .name = "det",
    .help = "determinants of square matrices",
    .min_in = 1,
    .max_in = 1,
    .infer = infer,
    .cost = cost,
    .scratch = scratch,
    .forward = forward,
    .onnx = {.type = "Det", .since = 11},
    EW_OP_CASES(cases),
};
