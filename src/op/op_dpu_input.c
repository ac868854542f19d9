/* SPDX-License-Identifier: Apache-2.0 */
/* The host's input conversion for a DPU: float32 to int8, rounded half away from zero. */
#include <math.h>

#include "op/dpu.h"

static const struct ew_field attrs[] = {
    EW_DPU_POSITION_FIELD(struct ew_dpu_input_attr, position, "of the binary point"), EW_FIELD_END};

static ew_err infer(const struct ew_call *c)
{
    EW_TRY(ew_types_check(c, 0, 1 << EW_F32));
    c->out[0]->dtype = EW_S8;
    c->out[0]->shape = c->in[0]->shape;
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_dpu_input_attr *a = c->attr;
    const float *x = c->in[0]->data, scale = ldexpf(1, (int)a->position);
    int8_t *y = c->out[0]->data;
    for (int64_t i = 0; i < ew_tensor_count(c->out[0]); i++) {
        const float q = roundf(x[i] * scale);
        y[i] = (int8_t)(q >= 127 ? 127 : (q > -128 ? q : -128)); /* NaN: -128 */
    }
    return EW_OK;
}

static ew_err permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    return EW_OK; /* no axis to update */
}

static const struct ew_op_case cases[] = {
    {.name = "fine", .attrs = "position=6", .in = {{"2x5x7x3"}}, .n_in = 1, .out_shape = "2x5x7x3"},
    {.name = "coarse", .attrs = "position=-1", .in = {{"70"}}, .n_in = 1, .out_shape = "70"},
};

const struct ew_op ew_op_dpu_input = {
    .name = "dpu_input",
    .help = "float32 to int8 at a binary point, half away from zero",
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_dpu_input_attr),
    .attrs = attrs,
    .infer = infer,
    .forward = forward,
    .permute = permute,
    EW_OP_CASES(cases),
};
