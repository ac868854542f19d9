/* SPDX-License-Identifier: Apache-2.0 */
/* MatMulInteger: the product of 8-bit matrices as int32. */
#include <string.h>

#include "op/int_matmul.h"

enum { A, B, A_ZERO, B_ZERO, INPUTS };

static ew_err resolve(const struct ew_call *c, struct ew_int_matmul *out)
{
    *out = (struct ew_int_matmul){.a = A, .a_zero = A_ZERO, .b = B, .b_zero = B_ZERO};
    return ew_int_matmul_resolve(c, out);
}

static ew_err infer(const struct ew_call *c)
{
    struct ew_int_matmul m;
    EW_TRY(resolve(c, &m));
    *c->out[0] = (struct ew_tensor){.dtype = EW_S32, .shape = m.s.out};
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    struct ew_int_matmul m;
    if (resolve(c, &m) == EW_OK)
        ew_stacks_cost(&m.s, out);
}

static size_t scratch(const struct ew_call *c)
{
    return ew_int_matmul_scratch(c, A, B);
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_int_matmul m;
    EW_TRY(resolve(c, &m));
    ew_int_matmul_begin(c, &m);
    int32_t *y = c->out[0]->data;
    for (int64_t row = 0; row < ew_shape_count(&m.s.batch) * m.s.m; row++)
        memcpy(y + row * m.s.n, ew_int_matmul_row(c, &m, row), (size_t)m.s.n * sizeof(*y));
    return EW_OK;
}

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"3x5", EW_U8}, {"5x4", EW_S8}}, .n_in = 2, .out_shape = "3x4"},
    {.name = "zero points", .in = {{"3x5", EW_U8}, {"5x4", EW_U8}, {"", EW_U8}, {"", EW_U8}},
     .n_in = 4, .out_shape = "3x4"},
    {.name = "by row and column",
     .in = {{"2x3x5", EW_S8}, {"5x4", EW_S8}, {"3", EW_S8}, {"4", EW_S8}}, .n_in = 4,
     .out_shape = "2x3x4"},
    {.name = "vectors", .in = {{"5", EW_S8}, {"5", EW_S8}}, .n_in = 2, .out_shape = ""},
};
/* clang-format on */

const struct ew_op ew_op_matmul_integer = {
    .name = "matmul_integer",
    .help = "product of 8-bit matrices as int32",
    .min_in = 2,
    .max_in = INPUTS,
    .infer = infer,
    .cost = cost,
    .scratch = scratch,
    .forward = forward,
    .onnx = {.type = "MatMulInteger", .since = 10},
    EW_OP_CASES(cases),
};
