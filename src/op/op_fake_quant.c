/* SPDX-License-Identifier: Apache-2.0 */
/* Fake quantisation: quantise and dequantise, for quantisation-aware training.
 *
 *   y = (saturate(round(x / scale) + zero) - zero) * scale
 *
 * with the rounding of quantize_linear.  Straight-through gradient: dy inside the integers' range,
 * 0 outside. */
#include "graph/graph.h"
#include "op/quant.h"

enum { X, SCALE, ZERO };

static ew_err infer(const struct ew_call *c)
{
    EW_TRY(ew_types_check(c, X, 1 << EW_F32 | 1 << EW_F64));
    EW_TRY(ew_types_check(c, SCALE, 1u << c->in[X]->dtype));
    EW_TRY(ew_types_check(c, ZERO, EW_TYPES_QUANT8));
    EW_CHECK(ew_tensor_count(c->in[SCALE]) == 1 && ew_tensor_count(c->in[ZERO]) == 1, EW_ERR_SHAPE,
             "%lld scales and %lld zero points, must be one of each",
             (long long)ew_tensor_count(c->in[SCALE]), (long long)ew_tensor_count(c->in[ZERO]));
    c->out[0]->dtype = c->in[X]->dtype;
    c->out[0]->shape = c->in[X]->shape;
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    const int64_t zero = ew_tensor_get_int(c->in[ZERO], 0);
    const double scale = ew_tensor_get(c->in[SCALE], 0);
    for (int64_t i = 0; i < ew_tensor_count(c->in[X]); i++) {
        const double v = ew_tensor_get(c->in[X], i);
        const double ratio = (double)((float)v / (float)scale); /* like quantize_linear */
        const double y = (double)(ew_quant_round(ratio, zero, c->in[ZERO]->dtype) - zero) * scale;
        ew_tensor_store(c->out[0], i, 1, &y);
    }
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    double lo, hi;
    if (!c->din[X] || !c->dout[0])
        return EW_OK;
    ew_fake_quant_range(c, &lo, &hi);
    for (int64_t i = 0; i < ew_tensor_count(c->din[X]); i++) {
        const double v = ew_tensor_get(c->in[X], i), dy = ew_tensor_get(c->dout[0], i);
        if (v > lo && v < hi)
            ew_tensor_accumulate(c->din[X], i, 1, &dy);
    }
    return EW_OK;
}

/* Expands to QuantizeLinear and DequantizeLinear. */
static ew_err expand(struct ew_graph *g, int node, int *out)
{
    const struct ew_node n = g->nodes[node];
    return ew_fake_quant_pair(g, n.in, n.name, out);
}

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "unsigned", .in = {{"2x3", EW_F32, EW_FILL_VALUES, .values = "-0.2,0,0.26,0.7,1.9,9",
                                 .no_grad = true},
                                {"", EW_F32, EW_FILL_VALUES, .values = "0.01", .no_grad = true},
                                {"", EW_U8, EW_FILL_VALUES, .values = "3"}},
     .n_in = 3, .out_shape = "2x3"},
    {.name = "signed", .in = {{"5", EW_F32, EW_FILL_VALUES, .values = "-7,-1.1,0.3,0.95,6",
                               .no_grad = true},
                              {"", EW_F32, EW_FILL_VALUES, .values = "0.03125", .no_grad = true},
                              {"", EW_S8, EW_FILL_VALUES, .values = "0"}},
     .n_in = 3, .out_shape = "5"},
};
/* clang-format on */

const struct ew_op ew_op_fake_quant = {
    .name = "fake_quant",
    .help = "quantised and dequantised in one: training for integers",
    .flags = EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_IN0,
    .min_in = 3,
    .max_in = 3,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .onnx = {.expand = expand},
    EW_OP_CASES(cases),
};
