/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearMatMul: the product of quantised matrices, quantised again. */
#include "op/int_matmul.h"

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO, INPUTS };

static ew_err resolve(const struct ew_call *c, struct ew_int_matmul *out)
{
    *out = (struct ew_int_matmul){.a = A, .a_zero = A_ZERO, .b = B, .b_zero = B_ZERO};
    return ew_int_matmul_resolve(c, out);
}

static ew_err infer(const struct ew_call *c)
{
    struct ew_int_matmul m;
    EW_TRY(resolve(c, &m));
    EW_TRY(ew_quant_check_scale(c, A_SCALE, m.s.m));
    EW_TRY(ew_quant_check_scale(c, B_SCALE, m.s.n));
    EW_TRY(ew_quant_check_scale(c, Y_SCALE, 1));
    EW_TRY(ew_quant_check(c, Y_ZERO, Y_ZERO, 1));
    *c->out[0] = (struct ew_tensor){.dtype = c->in[Y_ZERO]->dtype, .shape = m.s.out};
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
    const int64_t zero = ew_tensor_get_int(c->in[Y_ZERO], 0);
    const double y_scale = ew_tensor_get(c->in[Y_SCALE], 0);
    for (int64_t row = 0; row < ew_shape_count(&m.s.batch) * m.s.m; row++) {
        const int32_t *sum = ew_int_matmul_row(c, &m, row);
        const double a_scale = ew_quant_scale(c->in[A_SCALE], row % m.s.m);
        for (int64_t j = 0; j < m.s.n; j++) {
            const float ratio = ew_quant_ratio(a_scale, ew_quant_scale(c->in[B_SCALE], j), y_scale);
            const int64_t q = ew_quant_sum(sum[j], ratio, zero, c->out[0]->dtype);
            ew_tensor_store_int(c->out[0], row * m.s.n + j, 1, &q);
        }
    }
    return EW_OK;
}

/* clang-format off */
#define SCALE(shape) {shape, .fill = EW_FILL_POSITIVE, .constant = true}
#define BYTE(value, type) {"", type, EW_FILL_VALUES, .values = value, .constant = true}

static const struct ew_op_case cases[] = {
    {.name = "uint8", .in = {{"3x5", EW_U8}, SCALE(""), {"", EW_U8}, {"5x4", EW_U8}, SCALE(""),
                             {"", EW_U8}, SCALE(""), {"", EW_U8}},
     .n_in = INPUTS, .out_shape = "3x4"},
    {.name = "columns, int8", .in = {{"2x3x5", EW_S8}, SCALE(""), {"", EW_S8}, {"5x4", EW_S8},
                                     SCALE("4"), {"4", EW_S8}, SCALE(""), {"", EW_S8}},
     .n_in = INPUTS, .out_shape = "2x3x4"},
    {.name = "rows by one matrix",
     .in = {{"2x3x50", EW_U8, EW_FILL_BYTES},
            {"", .fill = EW_FILL_VALUES, .values = "0.003", .constant = true}, BYTE("99", EW_U8),
            {"50x34", EW_S8, EW_FILL_BYTES, .constant = true}, SCALE("34"), BYTE("0", EW_S8),
            SCALE(""), BYTE("100", EW_U8)},
     .n_in = INPUTS, .out_shape = "2x3x34"},
};
/* clang-format on */

const struct ew_op ew_op_qlinear_matmul = {
    .name = "qlinear_matmul",
    .help = "product of quantised matrices, quantised again",
    .min_in = INPUTS,
    .max_in = INPUTS,
    .infer = infer,
    .cost = cost,
    .scratch = scratch,
    .forward = forward,
    .onnx = {.type = "QLinearMatMul", .since = 10},
    EW_OP_CASES(cases),
};
