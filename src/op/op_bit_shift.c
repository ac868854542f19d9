/* SPDX-License-Identifier: Apache-2.0 */
/* BitShift: a shifted by b bits, with broadcasting. */
#include "op/pointwise.h"

enum direction { LEFT, RIGHT };

struct attr {
    int direction; /* enum direction */
};

static const char *const directions[] = {"LEFT", "RIGHT", NULL};

static const struct ew_field attrs[] = {
    {.name = "direction",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct attr, direction),
     .choices = directions,
     .help = "towards higher or lower bits"},
    EW_FIELD_END,
};

static ew_err infer(const struct ew_call *c)
{
    EW_TRY(ew_types_check(c, 0, EW_TYPES_UNSIGNED));
    return ew_broadcast_infer_int(c);
}

static int64_t left(int64_t a, int64_t b)
{
    return (uint64_t)b < 64 ? (int64_t)((uint64_t)a << b) : 0;
}

static int64_t right(int64_t a, int64_t b)
{
    return (uint64_t)b < 64 ? (int64_t)((uint64_t)a >> b) : 0;
}

static ew_err forward(const struct ew_call *c)
{
    static const struct ew_binary to_left = {.fi = left}, to_right = {.fi = right};
    const struct attr *a = c->attr;
    return ew_binary_forward(c, a->direction == LEFT ? &to_left : &to_right);
}

static const struct ew_op_case cases[] = {
    {.name = "left",
     .attrs = "direction=LEFT",
     .in = {{"4", EW_U8, EW_FILL_VALUES, .values = "1,255,7,1"},
            {"4", EW_U8, EW_FILL_VALUES, .values = "1,4,0,200"}},
     .n_in = 2,
     .out_shape = "4"},
    {.name = "right",
     .attrs = "direction=RIGHT",
     .in = {{"2x1", EW_U64, EW_FILL_VALUES, .values = "16,9"},
            {"2", EW_U64, EW_FILL_VALUES, .values = "1,70"}},
     .n_in = 2,
     .out_shape = "2x2"},
};

const struct ew_op ew_op_bit_shift = {
    .name = "bit_shift",
    .help = "bits of a moved by b places, broadcasting",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .min_in = 2,
    .max_in = 2,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .forward = forward,
    .onnx = {.type = "BitShift", .since = 11},
    EW_OP_CASES(cases),
};
