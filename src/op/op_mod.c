/* SPDX-License-Identifier: Apache-2.0 */
/* Mod: the remainder of a / b with broadcasting, with the sign of b, or of a where fmod is set. */
#include "op/pointwise.h"

struct attr {
    bool fmod;
};

static const struct ew_field attrs[] = {
    {.name = "fmod",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct attr, fmod),
     .help = "the remainder has a's sign, as in C; floating numbers need it"},
    EW_FIELD_END,
};

static ew_err infer(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    EW_TRY(ew_broadcast_infer_number(c));
    EW_CHECK(a->fmod || !ew_dtype_is_float(c->in[0]->dtype), EW_ERR_TYPE, "mod of %s needs fmod=1",
             ew_dtype_name(c->in[0]->dtype));
    return EW_OK;
}

static double f(double a, double b)
{
    return fmod(a, b);
}

static int64_t by_dividend(int64_t a, int64_t b)
{
    return b == 0 || b == -1 ? 0 : a % b; /* INT64_MIN % -1 would trap */
}

static int64_t by_divisor(int64_t a, int64_t b)
{
    const int64_t r = by_dividend(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static uint64_t fu(uint64_t a, uint64_t b)
{
    return b == 0 ? 0 : a % b;
}

static ew_err forward(const struct ew_call *c)
{
    static const struct ew_binary like_c = {f, by_dividend, fu}, like_python = {f, by_divisor, fu};
    const struct attr *a = c->attr;
    return ew_binary_forward(c, a->fmod ? &like_c : &like_python);
}

static void df(double a, double b, double *ga, double *gb)
{
    *ga = 1;
    *gb = -trunc(a / b);
}

EW_BINARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    {.name = "floating",
     .attrs = "fmod=true",
     .in = {{"6", EW_F32, EW_FILL_VALUES, .values = "-4.3,7.2,5,4.3,-7.2,8"},
            {"6", EW_F32, EW_FILL_VALUES, .values = "2.1,-3.4,8,-2.1,3.4,5"}},
     .n_in = 2,
     .out_shape = "6"},
    {.name = "like python",
     .in = {{"6", EW_S32, EW_FILL_VALUES, .values = "-4,7,5,4,-7,8"},
            {"6", EW_S32, EW_FILL_VALUES, .values = "2,-3,8,-2,3,0"}},
     .n_in = 2,
     .out_shape = "6"},
    {.name = "like c",
     .attrs = "fmod=true",
     .in = {{"2x3", EW_S64}, {"", EW_S64, EW_FILL_VALUES, .values = "-3"}},
     .n_in = 2,
     .out_shape = "2x3"},
    {.name = "unsigned",
     .in = {{"3", EW_U64, EW_FILL_VALUES, .values = "7,8,9"},
            {"", EW_U64, EW_FILL_VALUES, .values = "4"}},
     .n_in = 2,
     .out_shape = "3"},
};

const struct ew_op ew_op_mod = {
    .name = "mod",
    .help = "remainder of a / b, broadcasting",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_IN0 | EW_SAVE_IN1,
    .min_in = 2,
    .max_in = 2,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Mod", .since = 10},
    EW_OP_CASES(cases),
};
