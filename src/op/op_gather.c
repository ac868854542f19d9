/* SPDX-License-Identifier: Apache-2.0 */
/* Gather: entries of an axis by their numbers. */
#include <string.h>

#include "op/index.h"
#include "op/move.h"
#include "op/shape_attr.h"
#include "op/types.h"

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

/* outer x [n of `entries`] x inner. */
struct split {
    int64_t outer, entries, n, inner;
};

static struct split split_axis(const struct ew_call *c)
{
    const struct ew_gather_attr *a = c->attr;
    const struct ew_shape *s = &c->in[0]->shape;
    const int axis = (int)(a->axis < 0 ? a->axis + s->rank : a->axis);
    return (struct split){.outer = ew_shape_span(s, 0, axis),
                          .entries = s->dim[axis],
                          .n = ew_tensor_count(c->in[1]),
                          .inner = ew_shape_span(s, axis + 1, s->rank)};
}

static ew_err forward(const struct ew_call *c)
{
    const struct split s = split_axis(c);
    const size_t row = (size_t)s.inner * ew_dtype_size(c->in[0]->dtype);
    const char *from = c->in[0]->data;
    char *to = c->out[0]->data;
    for (int64_t o = 0; o < s.outer; o++) {
        for (int64_t i = 0; i < s.n; i++) {
            int64_t at = 0;
            EW_TRY(ew_index_get(c->in[1], i, s.entries, &at));
            if (row)
                memcpy(to + (size_t)(o * s.n + i) * row, from + (size_t)(o * s.entries + at) * row,
                       row);
        }
    }
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    const struct split s = split_axis(c);
    const struct ew_shape row = {1, {s.inner}};
    struct ew_move m = ew_move_box(&row, &row, &row);
    for (int64_t o = 0; o < s.outer; o++) {
        for (int64_t i = 0; i < s.n; i++) {
            int64_t at = 0;
            EW_TRY(ew_index_get(c->in[1], i, s.entries, &at));
            m.src_at = (o * s.entries + at) * s.inner;
            m.dst_at = (o * s.n + i) * s.inner;
            ew_move_back(&m, c->din[0], c->dout[0]);
        }
    }
    return EW_OK;
}

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
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
