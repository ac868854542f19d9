/* SPDX-License-Identifier: Apache-2.0 */
/* Range: numbers from start to before limit by delta. */
#include <math.h>

#include "op/move.h"
#include "op/types.h"

enum { START, LIMIT, DELTA };

/* How many whole numbers; the differences are exact as unsigned. */
static ew_err count_ints(const struct ew_call *c, double *out)
{
    const int64_t start = ew_tensor_get_int(c->in[START], 0);
    const int64_t limit = ew_tensor_get_int(c->in[LIMIT], 0);
    const int64_t delta = ew_tensor_get_int(c->in[DELTA], 0);
    EW_CHECK(delta != 0, EW_ERR_ARG, "delta is 0");
    *out = 0;
    if (delta > 0 ? start >= limit : start <= limit)
        return EW_OK;
    const uint64_t span =
        delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    const uint64_t step = delta > 0 ? (uint64_t)delta : -(uint64_t)delta;
    *out = (double)((span - 1) / step + 1);
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    double n = 0;
    EW_TRY(ew_types_check(c, START, EW_TYPES_NUMBER));
    for (int i = START; i <= DELTA; i++) {
        EW_TRY(ew_types_same(c, i));
        EW_CHECK(ew_tensor_count(c->in[i]) == 1, EW_ERR_SHAPE, "input %d is not a scalar", i);
    }
    if (ew_dtype_is_float(c->in[START]->dtype)) {
        const double delta = ew_tensor_get(c->in[DELTA], 0);
        n = ceil((ew_tensor_get(c->in[LIMIT], 0) - ew_tensor_get(c->in[START], 0)) / delta);
        n = n > 0 ? n : 0;
    } else {
        EW_TRY(count_ints(c, &n));
    }
    EW_CHECK(n < 0x1p40, EW_ERR_LIMIT, "has %g elements", n);
    c->out[0]->shape = (struct ew_shape){1, {(int64_t)n}};
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    const int64_t n = ew_tensor_count(c->out[0]);
    if (ew_dtype_is_float(c->out[0]->dtype)) {
        const double start = ew_tensor_get(c->in[START], 0), delta = ew_tensor_get(c->in[DELTA], 0);
        for (int64_t i = 0; i < n; i++) {
            const double v = start + (double)i * delta;
            ew_tensor_store(c->out[0], i, 1, &v);
        }
        return EW_OK;
    }
    uint64_t v = (uint64_t)ew_tensor_get_int(c->in[START], 0);
    for (int64_t i = 0; i < n; i++, v += (uint64_t)ew_tensor_get_int(c->in[DELTA], 0)) {
        const int64_t whole = (int64_t)v;
        ew_tensor_store_int(c->out[0], i, 1, &whole);
    }
    return EW_OK;
}

#define SCALAR(type, text)                                                                         \
    {                                                                                              \
        "", type, EW_FILL_VALUES, .values = text, .constant = true                                 \
    }

static const struct ew_op_case cases[] = {
    {.name = "up",
     .in = {SCALAR(EW_S64, "1"), SCALAR(EW_S64, "8"), SCALAR(EW_S64, "3")},
     .n_in = 3,
     .out_shape = "3"},
    {.name = "down",
     .in = {SCALAR(EW_S32, "10"), SCALAR(EW_S32, "6"), SCALAR(EW_S32, "-3")},
     .n_in = 3,
     .out_shape = "2"},
    {.name = "float",
     .in = {SCALAR(EW_F32, "0"), SCALAR(EW_F32, "1"), SCALAR(EW_F32, "0.25")},
     .n_in = 3,
     .out_shape = "4"},
    {.name = "none",
     .in = {SCALAR(EW_S64, "5"), SCALAR(EW_S64, "1"), SCALAR(EW_S64, "1")},
     .n_in = 3,
     .out_shape = "0"},
};

const struct ew_op ew_op_range = {
    .name = "range",
    .help = "numbers from start to before limit by delta",
    .flags = EW_OP_NO_CDL,
    .min_in = 3,
    .max_in = 3,
    .known_in = 1 << START | 1 << LIMIT | 1 << DELTA,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .onnx = {.type = "Range", .since = 11},
    EW_OP_CASES(cases),
};
