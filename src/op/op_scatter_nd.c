/* SPDX-License-Identifier: Apache-2.0 */
/* ScatterND: copies the data, and replaces or combines the slices at given index tuples with
 * updates. */
#include "op/index.h"
#include "op/move.h"
#include "op/scatter.h"
#include "op/types.h"

static const struct ew_field attrs[] = {{.name = "reduction",
                                         .type = EW_FIELD_ENUM,
                                         .offset = offsetof(struct ew_scatter_attr, reduction),
                                         .def = "none",
                                         .choices = ew_scatter_choices,
                                         .help = "how an update meets the element"},
                                        EW_FIELD_END};

static ew_err infer(const struct ew_call *c)
{
    const struct ew_shape *data = &c->in[0]->shape, *index = &c->in[1]->shape;
    const struct ew_shape *updates = &c->in[2]->shape;
    EW_TRY(ew_types_check(c, 1, EW_TYPES_INDEX));
    EW_TRY(ew_types_same(c, 2));
    EW_CHECK(index->rank >= 1 && index->dim[index->rank - 1] <= data->rank, EW_ERR_SHAPE,
             "index tuples do not fit data of %d dimensions", data->rank);
    const int k = (int)index->dim[index->rank - 1], outer = index->rank - 1;
    EW_CHECK(updates->rank == outer + data->rank - k, EW_ERR_SHAPE,
             "updates have %d dimensions, must have %d", updates->rank, outer + data->rank - k);
    for (int i = 0; i < updates->rank; i++) {
        const int64_t want = i < outer ? index->dim[i] : data->dim[i - outer + k];
        EW_CHECK(updates->dim[i] == want, EW_ERR_SHAPE,
                 "dimension %d of the updates is %lld, must be %lld", i, (long long)updates->dim[i],
                 (long long)want);
    }
    c->out[0]->shape = *data;
    return EW_OK;
}

static ew_err target(const struct ew_call *c, int64_t j, int64_t *out)
{
    const struct ew_shape *data = &c->in[0]->shape, *index = &c->in[1]->shape;
    const int k = (int)index->dim[index->rank - 1];
    const int64_t slice = ew_shape_span(data, k, data->rank);
    EW_TRY(ew_index_tuple(c->in[1], j / slice, data, 0, out));
    *out += j % slice;
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

static const struct ew_op_case cases[] = {
    {.name = "elements",
     .in = {{"8"}, {"4x1", EW_S64, EW_FILL_VALUES, .values = "4,3,1,-1"}, {"4"}},
     .n_in = 3,
     .out_shape = "8"},
    {.name = "slices, twice",
     .in = {{"4x2x3"}, {"3x1", EW_S64, EW_FILL_VALUES, .values = "0,2,0"}, {"3x2x3"}},
     .n_in = 3,
     .out_shape = "4x2x3"},
    {.name = "add",
     .attrs = "reduction=add",
     .in = {{"4x2"}, {"3x2", EW_S64, EW_FILL_VALUES, .values = "0,1,3,0,0,1"}, {"3"}},
     .n_in = 3,
     .out_shape = "4x2"},
    {.name = "min, int",
     .attrs = "reduction=min",
     .in = {{"4", EW_S64}, {"2x1", EW_S64, EW_FILL_VALUES, .values = "0,3"}, {"2", EW_S64}},
     .n_in = 3,
     .out_shape = "4"},
};

const struct ew_op ew_op_scatter_nd = {
    .name = "scatter_nd",
    .help = "updates written to slices",
    EW_SCATTER_OP,
    .onnx = {.type = "ScatterND", .export = ew_scatter_export},
};
