/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearMul of ONNX Runtime: a * b of quantised tensors, quantised again. */
#include "op/qlinear.h"

static const struct ew_field attrs[] = {EW_QUANT_CLAMP_FIELDS(struct ew_qbinary_attr, clamp),
                                        EW_FIELD_END};

/* Products of two are below 2^17: exact. */
static int64_t multiply(const struct ew_quant_two *q, int64_t a, int64_t b)
{
    return ew_quant_sum((int32_t)(a * b), q->a_ratio, q->zero, q->dtype);
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_quant_two q = ew_qmul_ratios(c);
    return ew_qbinary_forward(c, &q, multiply);
}

static const char *const renames[] = {EW_QUANT_CLAMP_RENAMES, NULL};

/* clang-format off */
#define SCALE {"", .fill = EW_FILL_POSITIVE, .constant = true}
#define BYTE(value, type) {"", type, EW_FILL_VALUES, .values = value, .constant = true}
#define BYTES(shape, type) {shape, type, EW_FILL_BYTES}

static const struct ew_op_case cases[] = {
    {.name = "uint8",
     .in = {BYTES("2x5x7x11", EW_U8), SCALE, BYTE("100", EW_U8), BYTES("2x5x7x11", EW_U8), SCALE,
            BYTE("7", EW_U8), SCALE, BYTE("131", EW_U8)},
     .n_in = 8, .out_shape = "2x5x7x11"},
    {.name = "int8, clamped", .attrs = "lo=-20 hi=100",
     .in = {BYTES("300", EW_S8), SCALE, BYTE("-100", EW_S8), BYTES("300", EW_S8), SCALE,
            BYTE("7", EW_S8), SCALE, BYTE("-13", EW_S8)},
     .n_in = 8, .out_shape = "300"},
    {.name = "mixed types",
     .in = {BYTES("70", EW_S8), SCALE, BYTE("-100", EW_S8), BYTES("70", EW_U8), SCALE,
            BYTE("30", EW_U8), SCALE, BYTE("13", EW_U8)},
     .n_in = 8, .out_shape = "70"},
    {.name = "one a channel",
     .in = {BYTES("2x3x3x37", EW_U8), SCALE, BYTE("100", EW_U8), BYTES("2x1x1x37", EW_U8), SCALE,
            BYTE("7", EW_U8), SCALE, BYTE("131", EW_U8)},
     .n_in = 8, .out_shape = "2x3x3x37"},
    {.name = "broadcast both ways",
     .in = {BYTES("3x1x5", EW_U8), SCALE, BYTE("100", EW_U8), BYTES("4x1", EW_U8), SCALE,
            BYTE("7", EW_U8), SCALE, BYTE("131", EW_U8)},
     .n_in = 8, .out_shape = "3x4x5"},
};
/* clang-format on */

const struct ew_op ew_op_qlinear_mul = {
    .name = "qlinear_mul",
    .help = "a * b of quantised tensors, quantised again",
    .flags = EW_OP_ELEMENTWISE,
    .min_in = EW_QBINARY_INPUTS,
    .max_in = EW_QBINARY_INPUTS,
    .attr_size = sizeof(struct ew_qbinary_attr),
    .attrs = attrs,
    .infer = ew_qbinary_infer,
    .forward = forward,
    .onnx = {.type = "QLinearMul",
             .domain = "com.microsoft",
             .rename = renames,
             .export = ew_qbinary_export},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
