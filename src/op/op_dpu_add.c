/* SPDX-License-Identifier: Apache-2.0 */
/* Sum of two tensors as the DPU computes it: both at the coarser position with two guard bits. */
#include "op/dpu.h"

static const struct ew_field attrs[] = {
    EW_QUANT_CLAMP_FIELDS(struct ew_dpu_two_attr, clamp),
    EW_DPU_POSITION_FIELD(struct ew_dpu_two_attr, a, "position of the first"),
    EW_DPU_POSITION_FIELD(struct ew_dpu_two_attr, b, "position of the second"),
    EW_DPU_POSITION_FIELD(struct ew_dpu_two_attr, y, "position of the result"), EW_FIELD_END};

static ew_err forward(const struct ew_call *c)
{
    const struct ew_dpu_two_attr *a = c->attr;
    const int least = (int)(a->a < a->b ? a->a : a->b);
    int8_t *y = c->out[0]->data;
    for (int64_t i = 0; i < ew_tensor_count(c->out[0]); i++) {
        const int64_t sum = ew_dpu_align(ew_tensor_get_int(c->in[0], i), (int)a->a, least) +
                            ew_dpu_align(ew_dpu_second(c, i), (int)a->b, least);
        y[i] = ew_dpu_store(sum, least + EW_DPU_GUARD - (int)a->y, &a->clamp);
    }
    return EW_OK;
}

/* clang-format off */
#define BYTES(shape) {shape, EW_S8, EW_FILL_BYTES}

static const struct ew_op_case cases[] = {
    {.name = "one position", .attrs = "a=4 b=4 y=4", .in = {BYTES("2x5x7x11"), BYTES("2x5x7x11")},
     .n_in = 2, .out_shape = "2x5x7x11"},
    {.name = "finer first, relu", .attrs = "a=7 b=4 y=3 lo=0", .in = {BYTES("300"), BYTES("300")},
     .n_in = 2, .out_shape = "300"},
    {.name = "finer second, far apart", .attrs = "a=-2 b=6 y=-3", .in = {BYTES("3x100"), BYTES("3x100")},
     .n_in = 2, .out_shape = "3x100"},
    {.name = "to a finer position", .attrs = "a=3 b=2 y=9", .in = {BYTES("100"), BYTES("100")},
     .n_in = 2, .out_shape = "100"},
    {.name = "one a channel, clamped", .attrs = "a=5 b=7 y=5 lo=-20 hi=90",
     .in = {BYTES("2x3x3x37"), BYTES("2x1x1x37")}, .n_in = 2, .out_shape = "2x3x3x37"},
};
/* clang-format on */

const struct ew_op ew_op_dpu_add = {
    .name = "dpu_add",
    .help = "sum of two int8 tensors by the DPU's rules",
    .min_in = 2,
    .max_in = 2,
    .attr_size = sizeof(struct ew_dpu_two_attr),
    .attrs = attrs,
    .infer = ew_dpu_two_infer,
    .forward = forward,
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
