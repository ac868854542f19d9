/* SPDX-License-Identifier: Apache-2.0 */
/* DynamicQuantizeLinear: to uint8, with scale and zero point from the input's range. */
#include "op/quant.h"

enum { Y, SCALE, ZERO, OUTPUTS };

static ew_err infer(const struct ew_call *c)
{
    EW_TRY(ew_types_check(c, 0, 1 << EW_F32));
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i])
            *c->out[i] = (struct ew_tensor){.dtype = i == SCALE ? EW_F32 : EW_U8};
    if (c->out[Y])
        c->out[Y]->shape = c->in[0]->shape;
    return EW_OK;
}

/* The range is extended to 0, which is then exact.  All in float32, as ONNX specifies. */
static ew_err forward(const struct ew_call *c)
{
    const float *x = c->in[0]->data;
    float lo = 0, hi = 0;
    for (int64_t i = 0; i < ew_tensor_count(c->in[0]); i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    const float scale = hi > lo ? (hi - lo) / 255 : 1;
    const int64_t zero = ew_quant_round((double)(-lo / scale), 0, EW_U8);
    const double wide = (double)scale;
    for (int64_t i = 0; ew_call_out(c, Y) && i < ew_tensor_count(c->in[0]); i++) {
        const int64_t q = ew_quant_round((double)(x[i] / scale), zero, EW_U8);
        ew_tensor_store_int(c->out[Y], i, 1, &q);
    }
    if (ew_call_out(c, SCALE))
        ew_tensor_store(c->out[SCALE], 0, 1, &wide);
    if (ew_call_out(c, ZERO))
        ew_tensor_store_int(c->out[ZERO], 0, 1, &zero);
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "both signs", .in = {{"3x4"}}, .n_in = 1, .n_out = OUTPUTS, .out_shape = "3x4"},
    {.name = "positive",
     .in = {{"5", .fill = EW_FILL_POSITIVE}},
     .n_in = 1,
     .n_out = OUTPUTS,
     .out_shape = "5"},
    {.name = "zeros",
     .in = {{"2", EW_F32, EW_FILL_VALUES, .values = "0,0"}},
     .n_in = 1,
     .n_out = OUTPUTS,
     .out_shape = "2"},
};

const struct ew_op ew_op_dynamic_quantize_linear = {
    .name = "dynamic_quantize_linear",
    .help = "to uint8 by the input's own range",
    .min_in = 1,
    .max_in = 1,
    .max_out = OUTPUTS,
    .infer = infer,
    .forward = forward,
    .onnx = {.type = "DynamicQuantizeLinear", .since = 11},
    EW_OP_CASES(cases),
};
