/* SPDX-License-Identifier: Apache-2.0 */
/* Pow: a to the power of b with broadcasting; the result has a's type, b may have another. */
#include "op/pointwise.h"

static ew_err infer(const struct ew_call *c)
{
    EW_TRY(ew_types_check(c, 0, EW_TYPES_NUMBER));
    EW_TRY(ew_types_check(c, 1, EW_TYPES_NUMBER));
    c->out[0]->dtype = c->in[0]->dtype;
    return ew_shape_broadcast(&c->in[0]->shape, &c->in[1]->shape, &c->out[0]->shape);
}

static double f(double a, double b)
{
    return pow(a, b);
}

/* By squaring, modulo 2^64; with a negative exponent truncated division. */
static int64_t fi(int64_t a, int64_t b)
{
    if (b < 0 && a != 1 && a != -1)
        return 0;
    uint64_t base = (uint64_t)a, power = 1;
    for (uint64_t n = b < 0 ? (uint64_t)(b & 1) : (uint64_t)b; n; n >>= 1) {
        power *= n & 1 ? base : 1;
        base *= base;
    }
    return (int64_t)power;
}

static ew_err forward(const struct ew_call *c)
{
    static const struct ew_binary real = {.f = f}, whole = {.fi = fi};
    const bool any = ew_dtype_is_float(c->in[0]->dtype) || ew_dtype_is_float(c->in[1]->dtype);
    return ew_binary_forward(c, any ? &real : &whole);
}

static void df(double a, double b, double *ga, double *gb)
{
    *ga = b < 0 || b > 0 ? b * pow(a, b - 1) : 0;
    *gb = a > 0 || a < 0 || b < 0 ? pow(a, b) * log(a) : 0;
}

EW_BINARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    {.name = "same",
     .in = {{"2x3", EW_F32, EW_FILL_POSITIVE}, {"2x3"}},
     .n_in = 2,
     .out_shape = "2x3"},
    {.name = "square",
     .in = {{"2x3x4"}, {"", EW_F32, EW_FILL_VALUES, .values = "2", .no_grad = true}},
     .n_in = 2,
     .out_shape = "2x3x4"},
    {.name = "int",
     .in = {{"4", EW_S64, EW_FILL_VALUES, .values = "-3,2,1,5"},
            {"4", EW_S32, EW_FILL_VALUES, .values = "3,40,-2,-1"}},
     .n_in = 2,
     .out_shape = "4"},
    {.name = "mixed",
     .in = {{"3", EW_S32, EW_FILL_VALUES, .values = "1,2,3"},
            {"3", EW_F32, EW_FILL_VALUES, .values = "0.5,2,3", .no_grad = true}},
     .n_in = 2,
     .out_shape = "3"},
};

const struct ew_op ew_op_pow = {
    .name = "pow",
    .help = "a to the power of b, broadcasting",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_IN0 | EW_SAVE_IN1,
    .min_in = 2,
    .max_in = 2,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Pow", .since = 7},
    EW_OP_CASES(cases),
};
