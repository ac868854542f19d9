/* SPDX-License-Identifier: Apache-2.0 */
/* OneHot: a new axis with the "on" value where the index says and "off" elsewhere. */
#include "op/lanes.h"
#include "op/move.h"

enum { INDICES, DEPTH, VALUES };

struct attr {
    int64_t axis;
};

static const struct ew_field attrs[] = {{.name = "axis",
                                         .type = EW_FIELD_INT,
                                         .offset = offsetof(struct attr, axis),
                                         .def = "-1",
                                         .help = "where the new axis is in the output"},
                                        EW_FIELD_END};

static ew_err infer(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    const struct ew_shape *in = &c->in[INDICES]->shape;
    struct ew_shape *out = &c->out[0]->shape;
    int axis;
    EW_TRY(ew_types_check(c, INDICES, EW_TYPES_NUMBER));
    EW_CHECK(in->rank < EW_MAX_RANK, EW_ERR_LIMIT, "the output would have %d dimensions",
             in->rank + 1);
    EW_TRY(ew_shape_axis(a->axis, in->rank + 1, &axis));
    EW_CHECK(ew_tensor_count(c->in[DEPTH]) == 1, EW_ERR_SHAPE, "depth is not a scalar");
    EW_CHECK(ew_tensor_count(c->in[VALUES]) == 2, EW_ERR_SHAPE, "values are not two");
    const int64_t depth = ew_tensor_get_int(c->in[DEPTH], 0);
    EW_CHECK(depth > 0, EW_ERR_ARG, "depth is %lld", (long long)depth);
    c->out[0]->dtype = c->in[VALUES]->dtype;
    out->rank = in->rank + 1;
    for (int i = 0; i < out->rank; i++)
        out->dim[i] = i < axis ? in->dim[i] : i == axis ? depth : in->dim[i - 1];
    return EW_OK;
}

/* An index out of range gives "off" everywhere. */
static ew_err forward(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    const struct ew_shape *out = &c->out[0]->shape;
    const struct ew_lanes l = ew_lanes_of(out, ew_axis_of(a->axis, out->rank));
    for (int64_t i = 0; i < ew_tensor_count(c->out[0]); i++)
        ew_element_copy(c->in[VALUES], 0, c->out[0], i);
    for (int64_t i = 0; i < ew_tensor_count(c->in[INDICES]); i++) {
        const int64_t index = ew_tensor_get_int(c->in[INDICES], i);
        const int64_t at = index < 0 ? index + l.n : index;
        if (at >= 0 && at < l.n)
            ew_element_copy(c->in[VALUES], 1, c->out[0], ew_lane_start(&l, i) + at * l.inner);
    }
    return EW_OK;
}

#define DEPTH_OF(text)                                                                             \
    {                                                                                              \
        "", EW_S64, EW_FILL_VALUES, .values = text, .constant = true                               \
    }

static const struct ew_op_case cases[] = {
    {.name = "classes",
     .in = {{"4", EW_S64, EW_FILL_VALUES, .values = "0,2,-1,7"}, DEPTH_OF("3"), {"2"}},
     .n_in = 3,
     .out_shape = "4x3"},
    {.name = "first axis",
     .attrs = "axis=0",
     .in = {{"2x2", EW_S32, EW_FILL_CLASSES, 5}, DEPTH_OF("5"), {"2", EW_S8}},
     .n_in = 3,
     .out_shape = "5x2x2"},
    {.name = "inside",
     .attrs = "axis=1",
     .in = {{"2x3", EW_F32, EW_FILL_CLASSES, 4, .no_grad = true}, DEPTH_OF("4"), {"2"}},
     .n_in = 3,
     .out_shape = "2x4x3"},
};

const struct ew_op ew_op_one_hot = {
    .name = "one_hot",
    .help = "indices as rows of off and on",
    .min_in = 3,
    .max_in = 3,
    .known_in = 1 << DEPTH,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .onnx = {.type = "OneHot", .since = 9},
    EW_OP_CASES(cases),
};
