/* SPDX-License-Identifier: Apache-2.0 */
/* Where: condition ? a : b, with broadcasting of all three. */
#include "op/pointwise.h"

static ew_err infer(const struct ew_call *c)
{
    struct ew_shape s;
    EW_TRY(ew_types_check(c, 0, EW_TYPES_BOOL));
    EW_CHECK(c->in[1]->dtype == c->in[2]->dtype, EW_ERR_TYPE, "inputs are %s and %s",
             ew_dtype_name(c->in[1]->dtype), ew_dtype_name(c->in[2]->dtype));
    EW_TRY(ew_shape_broadcast(&c->in[0]->shape, &c->in[1]->shape, &s));
    EW_TRY(ew_shape_broadcast(&s, &c->in[2]->shape, &c->out[0]->shape));
    c->out[0]->dtype = c->in[1]->dtype;
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_tensor *y = c->out[0];
    const struct ew_shape *s = &y->shape;
    const bool real = ew_dtype_is_float(y->dtype);
    int64_t cond[EW_CHUNK], ai[EW_CHUNK], bi[EW_CHUNK];
    double a[EW_CHUNK], b[EW_CHUNK];
    const int64_t count = ew_tensor_count(y);
    for (int64_t at = 0; at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        ew_broadcast_load_int(c->in[0], s, at, n, cond);
        if (real) {
            ew_broadcast_load(c->in[1], s, at, n, a);
            ew_broadcast_load(c->in[2], s, at, n, b);
            for (int64_t i = 0; i < n; i++)
                a[i] = cond[i] ? a[i] : b[i];
            ew_tensor_store(y, at, n, a);
        } else {
            ew_broadcast_load_int(c->in[1], s, at, n, ai);
            ew_broadcast_load_int(c->in[2], s, at, n, bi);
            for (int64_t i = 0; i < n; i++)
                ai[i] = cond[i] ? ai[i] : bi[i];
            ew_tensor_store_int(y, at, n, ai);
        }
    }
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    int64_t cond[EW_CHUNK];
    double g[EW_CHUNK], part[EW_CHUNK];
    if (!c->dout[0])
        return EW_OK;
    const struct ew_shape *s = &c->dout[0]->shape;
    const int64_t count = ew_shape_count(s);
    for (int64_t at = 0; at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        ew_broadcast_load_int(c->in[0], s, at, n, cond);
        ew_tensor_load(c->dout[0], at, n, g);
        for (int k = 1; k <= 2; k++) {
            if (!c->din[k])
                continue;
            for (int64_t i = 0; i < n; i++)
                part[i] = (k == 1) == (cond[i] != 0) ? g[i] : 0;
            ew_broadcast_accumulate(c->din[k], s, at, n, part);
        }
    }
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "same", .in = {{"2x3", EW_BOOL}, {"2x3"}, {"2x3"}}, .n_in = 3, .out_shape = "2x3"},
    {.name = "all broadcast",
     .in = {{"3x1", EW_BOOL}, {"2x1x4"}, {""}},
     .n_in = 3,
     .out_shape = "2x3x4"},
    {.name = "int",
     .in = {{"3", EW_BOOL}, {"3", EW_S64}, {"3", EW_S64}},
     .n_in = 3,
     .out_shape = "3"},
    {.name = "half",
     .in = {{"", EW_BOOL}, {"3", EW_F16}, {"", EW_F16}},
     .n_in = 3,
     .out_shape = "3"},
};

const struct ew_op ew_op_where = {
    .name = "where",
    .help = "a where the condition is true, else b, broadcasting",
    .flags = EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_IN0,
    .min_in = 3,
    .max_in = 3,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Where", .since = 9},
    EW_OP_CASES(cases),
};
