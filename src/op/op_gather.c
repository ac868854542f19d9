/* SPDX-License-Identifier: Apache-2.0 */
/* Gather: entries of an axis by index. */
#include "op/index.h"
#include "op/lanes.h"
#include "op/move.h"
#include "op/shape_attr.h"

static const struct ew_field attrs[] = {{.name = "axis",
                                         .type = EW_FIELD_INT,
                                         .offset = offsetof(struct ew_gather_attr, axis),
                                         .help = "the axis whose entries are picked"},
                                        EW_FIELD_END};

static ew_err infer(const struct ew_call *c)
{
    const struct ew_gather_attr *a = c->attr;
    const struct ew_shape *data = &c->in[0]->shape, *index = &c->in[1]->shape;
    struct ew_shape *out = &c->out[0]->shape;
    int axis;
    EW_ASSERT(c->in[1]); /* checked by the graph */
    EW_TRY(ew_types_check(c, 1, EW_TYPES_INDEX));
    EW_TRY(ew_shape_axis(a->axis, data->rank, &axis));
    EW_CHECK(data->rank + index->rank - 1 <= EW_MAX_RANK, EW_ERR_LIMIT,
             "the output would have %d dimensions", data->rank + index->rank - 1);
    out->rank = 0;
    for (int i = 0; i < axis; i++)
        out->dim[out->rank++] = data->dim[i];
    for (int i = 0; i < index->rank; i++)
        out->dim[out->rank++] = index->dim[i];
    for (int i = axis + 1; i < data->rank; i++)
        out->dim[out->rank++] = data->dim[i];
    return EW_OK;
}

/* Gathers entries; `back`: scatter-adds their gradients. */
static ew_err run(const struct ew_call *c, bool back)
{
    const struct ew_gather_attr *a = c->attr;
    const struct ew_shape *data = &c->in[0]->shape;
    const struct ew_lanes l = ew_lanes_of(data, ew_axis_of(a->axis, data->rank));
    const int64_t n = ew_tensor_count(c->in[1]);
    const struct ew_shape row = {1, {l.inner}};
    struct ew_move m = ew_move_box(&row, &row, &row);
    for (int64_t i = 0; i < l.outer * n; i++) {
        int64_t at = 0;
        EW_TRY(ew_index_get(c->in[1], i % n, l.n, &at));
        m.src_at = (i / n * l.n + at) * l.inner;
        m.dst_at = i * l.inner;
        ew_move_either(&m, c, back);
    }
    return EW_OK;
}

EW_MOVE_HOOKS(run)

static const struct ew_op_case cases[] = {
    {.name = "rows",
     .in = {{"4x3"}, {"2x2", EW_S64, EW_FILL_VALUES, .values = "0,3,-1,1"}},
     .n_in = 2,
     .out_shape = "2x2x3"},
    {.name = "columns, scalar",
     .attrs = "axis=1",
     .in = {{"4x3x2"}, {"", EW_S32, EW_FILL_VALUES, .values = "-2"}},
     .n_in = 2,
     .out_shape = "4x2"},
    {.name = "last axis, repeated",
     .attrs = "axis=-1",
     .in = {{"2x3"}, {"4", EW_S64, EW_FILL_VALUES, .values = "2,2,0,2"}},
     .n_in = 2,
     .out_shape = "2x4"},
    {.name = "shape",
     .in = {{"4", EW_S64}, {"", EW_S64, EW_FILL_VALUES, .values = "1"}},
     .n_in = 2,
     .out_shape = ""},
    {.name = "none of none", .in = {{"0x3"}, {"0", EW_S64}}, .n_in = 2, .out_shape = "0x3"},
};

const struct ew_op ew_op_gather = {
    .name = "gather",
    .help = "entries of an axis by their numbers",
    .saves = EW_SAVE_IN1,
    .min_in = 2,
    .max_in = 2,
    .attr_size = sizeof(struct ew_gather_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Gather"},
    EW_OP_CASES(cases),
};
