/* SPDX-License-Identifier: Apache-2.0 */
/* ScatterElements: copies the data, and replaces or combines the elements at given indices along an
 * axis with updates. */
#include "op/axis.h"
#include "op/index.h"
#include "op/move.h"
#include "op/scatter.h"
#include "op/types.h"

static const struct ew_field attrs[] = {{.name = "axis",
                                         .type = EW_FIELD_INT,
                                         .offset = offsetof(struct ew_scatter_attr, axis),
                                         .help = "the axis in which the indices count"},
                                        {.name = "reduction",
                                         .type = EW_FIELD_ENUM,
                                         .offset = offsetof(struct ew_scatter_attr, reduction),
                                         .def = "none",
                                         .choices = ew_scatter_choices,
                                         .help = "how an update meets the element"},
                                        EW_FIELD_END};

static ew_err infer(const struct ew_call *c)
{
    const struct ew_scatter_attr *a = c->attr;
    const struct ew_shape *data = &c->in[0]->shape, *index = &c->in[1]->shape;
    int axis;
    EW_TRY(ew_types_check(c, 1, EW_TYPES_INDEX));
    EW_TRY(ew_types_same(c, 2));
    EW_TRY(ew_shape_axis(a->axis, data->rank, &axis));
    EW_CHECK(index->rank == data->rank, EW_ERR_SHAPE, "indices have %d dimensions, the data %d",
             index->rank, data->rank);
    EW_CHECK(ew_shape_equal(index, &c->in[2]->shape), EW_ERR_SHAPE,
             "indices and updates have different shapes");
    for (int i = 0; i < data->rank; i++)
        EW_CHECK(i == axis || index->dim[i] <= data->dim[i], EW_ERR_SHAPE,
                 "dimension %d of the indices is %lld, of the data %lld", i,
                 (long long)index->dim[i], (long long)data->dim[i]);
    c->out[0]->shape = *data;
    return EW_OK;
}

static ew_err target(const struct ew_call *c, int64_t j, int64_t *out)
{
    const struct ew_scatter_attr *a = c->attr;
    const struct ew_shape *data = &c->in[0]->shape, *index = &c->in[1]->shape;
    const int axis = ew_axis_of(a->axis, data->rank);
    int64_t rest = j, stride = 1;
    *out = 0;
    for (int i = data->rank - 1; i >= 0; i--) {
        int64_t at = rest % index->dim[i];
        rest /= index->dim[i];
        if (i == axis)
            EW_TRY(ew_index_get(c->in[1], j, data->dim[i], &at));
        *out += at * stride;
        stride *= data->dim[i];
    }
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    return ew_scatter_forward(c, target);
}

static ew_err backward(const struct ew_call *c)
{
    return ew_scatter_backward(c, target);
}

static const char *const also[] = {"Scatter", NULL};

#define INDEX(shape, text)                                                                         \
    {                                                                                              \
        shape, EW_S64, EW_FILL_VALUES, .values = text                                              \
    }

static const struct ew_op_case cases[] = {
    {.name = "rows",
     .in = {{"3x3"}, INDEX("2x3", "1,0,2,0,-1,1"), {"2x3"}},
     .n_in = 3,
     .out_shape = "3x3"},
    {.name = "last axis, twice",
     .attrs = "axis=-1",
     .in = {{"2x5"}, INDEX("1x3", "1,3,1"), {"1x3"}},
     .n_in = 3,
     .out_shape = "2x5"},
    {.name = "add",
     .attrs = "axis=1 reduction=add",
     .in = {{"1x5"}, INDEX("1x3", "1,3,1"), {"1x3"}},
     .n_in = 3,
     .out_shape = "1x5"},
    {.name = "max",
     .attrs = "reduction=max",
     .in = {{"4", .no_grad = true}, INDEX("3", "1,3,1"), {"3", .no_grad = true}},
     .n_in = 3,
     .out_shape = "4"},
    {.name = "mul, int",
     .attrs = "reduction=mul",
     .in = {{"4", EW_S32}, INDEX("3", "1,3,1"), {"3", EW_S32}},
     .n_in = 3,
     .out_shape = "4"},
};

const struct ew_op ew_op_scatter_elements = {
    .name = "scatter_elements",
    .help = "updates written to elements along an axis",
    EW_SCATTER_OP,
    .permute = ew_axis_permute,
    .onnx = {.type = "ScatterElements", .also = also, .export = ew_scatter_export},
};
