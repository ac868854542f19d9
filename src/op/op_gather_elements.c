/* SPDX-License-Identifier: Apache-2.0 */
/* GatherElements: one element along an axis for each index. */
#include "op/axis.h"
#include "op/index.h"
#include "op/move.h"
#include "op/shape_attr.h"
#include "op/types.h"
#include "op/walk.h"

static const struct ew_field attrs[] = {{.name = "axis",
                                         .type = EW_FIELD_INT,
                                         .offset = offsetof(struct ew_gather_attr, axis),
                                         .help = "the axis in which the indices count"},
                                        EW_FIELD_END};

static ew_err infer(const struct ew_call *c)
{
    const struct ew_gather_attr *a = c->attr;
    const struct ew_shape *data = &c->in[0]->shape, *index = &c->in[1]->shape;
    int axis;
    EW_TRY(ew_types_check(c, 1, EW_TYPES_INDEX));
    EW_TRY(ew_shape_axis(a->axis, data->rank, &axis));
    EW_CHECK(index->rank == data->rank, EW_ERR_SHAPE, "indices have %d dimensions, the data %d",
             index->rank, data->rank);
    for (int i = 0; i < data->rank; i++)
        EW_CHECK(i == axis || index->dim[i] <= data->dim[i], EW_ERR_SHAPE,
                 "dimension %d of the indices is %lld, of the data %lld", i,
                 (long long)index->dim[i], (long long)data->dim[i]);
    c->out[0]->shape = *index;
    return EW_OK;
}

/* Gathers elements; `back`: scatter-adds their gradients. */
static ew_err run(const struct ew_call *c, bool back)
{
    const struct ew_gather_attr *a = c->attr;
    const struct ew_shape *data = &c->in[0]->shape;
    const int axis = ew_axis_of(a->axis, data->rank);
    struct ew_walk w = ew_walk_begin(&c->in[1]->shape);
    ew_shape_strides(data, data, w.stride[0]);
    const int64_t step = w.stride[0][axis];
    w.stride[0][axis] = 0; /* the index says where along the axis */
    for (int64_t i = 0; i < ew_tensor_count(c->in[1]); i++, ew_walk_next(&w)) {
        int64_t at = 0;
        EW_TRY(ew_index_get(c->in[1], i, data->dim[axis], &at));
        if (back)
            ew_element_add(c->dout[0], i, c->din[0], w.pos[0] + at * step);
        else
            ew_element_copy(c->in[0], w.pos[0] + at * step, c->out[0], i);
    }
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    return run(c, false);
}

static ew_err backward(const struct ew_call *c)
{
    return c->din[0] && c->dout[0] ? run(c, true) : EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "rows",
     .in = {{"3x3"}, {"2x3", EW_S64, EW_FILL_VALUES, .values = "1,2,0,2,-3,0"}},
     .n_in = 2,
     .out_shape = "2x3"},
    {.name = "columns, repeated",
     .attrs = "axis=1",
     .in = {{"2x2"}, {"2x3", EW_S32, EW_FILL_VALUES, .values = "0,0,1,1,0,1"}},
     .n_in = 2,
     .out_shape = "2x3"},
    {.name = "part of the others",
     .attrs = "axis=-1",
     .in = {{"2x3x4", EW_U8}, {"1x2x1", EW_S64, EW_FILL_VALUES, .values = "3,-1"}},
     .n_in = 2,
     .out_shape = "1x2x1"},
};

const struct ew_op ew_op_gather_elements = {
    .name = "gather_elements",
    .help = "one element along an axis for each index",
    .saves = EW_SAVE_IN1,
    .min_in = 2,
    .max_in = 2,
    .attr_size = sizeof(struct ew_gather_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .permute = ew_axis_permute,
    .onnx = {.type = "GatherElements"},
    EW_OP_CASES(cases),
};
