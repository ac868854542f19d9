/* SPDX-License-Identifier: Apache-2.0 */
/* Average pooling on the DPU: multiplication and shift instead of division. */
#include "op/dpu.h"

/* clang-format off */
static const struct ew_field attrs[] = {
    EW_WINDOW_FIELDS(struct ew_pool_attr, win),
    {.name = "ceil_mode", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_pool_attr, ceil_mode),
     .help = "round the output size up"},
    EW_DPU_POSITION_FIELD(struct ew_dpu_pool_attr, shift, "position of x less that of y"),
    EW_FIELD_END};
/* clang-format on */

static ew_err infer(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_types_check(c, 0, 1 << EW_S8));
    EW_TRY(ew_pool_resolve(c, &w));
    ew_pool_shape(c, &w);
    c->out[0]->dtype = EW_S8;
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    struct ew_window w;
    if (ew_pool_resolve(c, &w) == EW_OK)
        ew_pool_cost(c, &w, out);
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_dpu_pool_attr *a = c->attr;
    const struct ew_quant_clamp all = {-128, 127};
    const int8_t *x = c->in[0]->data;
    int8_t *y = c->out[0]->data;
    struct ew_window w;
    EW_TRY(ew_pool_resolve(c, &w));
    const struct ew_dpu_mean mean = ew_dpu_mean(w.kernel[1], w.kernel[2]);
    for (int64_t n = 0; n < w.batch; n++) {
        int64_t o[EW_WINDOW_DIMS] = {0};
        do {
            for (int64_t k = 0; k < w.channels; k++) {
                struct ew_tap t;
                int64_t sum = 0;
                for (bool more = ew_tap_first(&w, n, o, &t); more; more = ew_tap_next(&w, &t))
                    sum += x[t.row * w.channels + k];
                *y++ = ew_dpu_store(sum * mean.factor, mean.shift + (int)a->shift, &all);
            }
        } while (ew_window_next(&w, o));
    }
    return EW_OK;
}

/* clang-format off */
#define BYTES(shape) {shape, EW_S8, EW_FILL_BYTES}

static const struct ew_op_case cases[] = {
    {.name = "2x2", .attrs = "kernel=2x2 stride=2x2", .in = {BYTES("2x6x4x35")}, .n_in = 1,
     .out_shape = "2x3x2x35"},
    {.name = "3x3, padded", .attrs = "kernel=3x3 pad=1x1x1x1 shift=1", .in = {BYTES("1x7x6x5")}, .n_in = 1,
     .out_shape = "1x7x6x5"},
    {.name = "7x7, finer", .attrs = "kernel=7x7 shift=-2", .in = {BYTES("1x7x7x40")}, .n_in = 1,
     .out_shape = "1x1x1x40"},
    {.name = "14x14", .attrs = "kernel=14x14", .in = {BYTES("1x14x14x3")}, .n_in = 1,
     .out_shape = "1x1x1x3"},
    {.name = "5x5", .attrs = "kernel=5x5", .in = {BYTES("2x5x5x4")}, .n_in = 1, .out_shape = "2x1x1x4"},
    {.name = "6x6", .attrs = "kernel=6x6 shift=2", .in = {BYTES("1x6x6x4")}, .n_in = 1, .out_shape = "1x1x1x4"},
    {.name = "13x13", .attrs = "kernel=13x13 shift=-1", .in = {BYTES("1x13x13x17")}, .n_in = 1,
     .out_shape = "1x1x1x17"},
    {.name = "2x3", .attrs = "kernel=2x3", .in = {BYTES("1x4x9x17")}, .n_in = 1, .out_shape = "1x3x7x17"},
};
/* clang-format on */

const struct ew_op ew_op_dpu_average_pool = {
    .name = "dpu_average_pool",
    .help = "int8 averages by the DPU's rules",
    .flags = EW_OP_SPATIAL,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_dpu_pool_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    EW_OP_CASES(cases),
};
