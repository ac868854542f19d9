/* SPDX-License-Identifier: Apache-2.0 */
/* GatherND: slices of the data by index tuples. */
#include "op/index.h"
#include "op/move.h"
#include "op/types.h"

struct attr {
    int64_t batch_dims; /* leading axes that data and indices share */
};

static const struct ew_field attrs[] = {{.name = "batch_dims",
                                         .type = EW_FIELD_INT,
                                         .offset = offsetof(struct attr, batch_dims),
                                         .max = EW_MAX_RANK,
                                         .help = "leading axes that data and indices share"},
                                        EW_FIELD_END};

static ew_err infer(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    const struct ew_shape *data = &c->in[0]->shape, *index = &c->in[1]->shape;
    struct ew_shape *out = &c->out[0]->shape;
    EW_ASSERT(c->in[1]); /* checked by the graph */
    EW_TRY(ew_types_check(c, 1, EW_TYPES_INDEX));
    EW_CHECK(index->rank >= 1 && a->batch_dims >= 0 && a->batch_dims < index->rank &&
                 a->batch_dims + index->dim[index->rank - 1] <= data->rank,
             EW_ERR_SHAPE, "index tuples do not fit data of %d dimensions", data->rank);
    const int batch = (int)a->batch_dims, k = (int)index->dim[index->rank - 1];
    for (int i = 0; i < batch; i++)
        EW_CHECK(data->dim[i] == index->dim[i], EW_ERR_SHAPE,
                 "batch dimension %d is %lld in the data, %lld in the indices", i,
                 (long long)data->dim[i], (long long)index->dim[i]);
    EW_CHECK(index->rank - 1 + data->rank - batch - k <= EW_MAX_RANK, EW_ERR_LIMIT,
             "the output would have %d dimensions", index->rank - 1 + data->rank - batch - k);
    out->rank = 0;
    for (int i = 0; i < index->rank - 1; i++)
        out->dim[out->rank++] = index->dim[i];
    for (int i = batch + k; i < data->rank; i++)
        out->dim[out->rank++] = data->dim[i];
    return EW_OK;
}

/* Gathers slices; `back`: scatter-adds their gradients. */
static ew_err run(const struct ew_call *c, bool back)
{
    const struct attr *a = c->attr;
    const struct ew_shape *data = &c->in[0]->shape, *index = &c->in[1]->shape;
    const int batch = (int)a->batch_dims, k = (int)index->dim[index->rank - 1];
    const int64_t rows = ew_shape_span(index, batch, index->rank - 1); /* in each batch */
    const int64_t block = ew_shape_span(data, batch, data->rank);
    const struct ew_shape slice = {1, {ew_shape_span(data, batch + k, data->rank)}};
    struct ew_move m = ew_move_box(&slice, &slice, &slice);
    for (int64_t i = 0; i < ew_shape_span(index, 0, index->rank - 1); i++) {
        int64_t at = 0;
        EW_TRY(ew_index_tuple(c->in[1], i, data, batch, &at));
        m.src_at = i / rows * block + at;
        m.dst_at = i * slice.dim[0];
        ew_move_either(&m, c, back);
    }
    return EW_OK;
}

EW_MOVE_HOOKS(run)

static const struct ew_op_case cases[] = {
    {.name = "elements",
     .in = {{"2x2"}, {"3x2", EW_S64, EW_FILL_VALUES, .values = "0,0,1,-1,0,0"}},
     .n_in = 2,
     .out_shape = "3"},
    {.name = "slices",
     .in = {{"2x3x4"}, {"2x1x1", EW_S64, EW_FILL_VALUES, .values = "1,0"}},
     .n_in = 2,
     .out_shape = "2x1x3x4"},
    {.name = "batch",
     .attrs = "batch_dims=1",
     .in = {{"2x3x2"}, {"2x2x1", EW_S64, EW_FILL_VALUES, .values = "1,0,2,2"}},
     .n_in = 2,
     .out_shape = "2x2x2"},
    {.name = "scalar",
     .in = {{"2x2", EW_BOOL}, {"2", EW_S64, EW_FILL_VALUES, .values = "1,0"}},
     .n_in = 2,
     .out_shape = ""},
};

const struct ew_op ew_op_gather_nd = {
    .name = "gather_nd",
    .help = "slices of the data by index tuples",
    .saves = EW_SAVE_IN1,
    .min_in = 2,
    .max_in = 2,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "GatherND", .since = 11},
    EW_OP_CASES(cases),
};
