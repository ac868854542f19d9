/* SPDX-License-Identifier: Apache-2.0 */
/* Concat: concatenation along an axis. */
#include "op/axis.h"
#include "op/move.h"
#include "op/shape_attr.h"
#include "op/types.h"

static const struct ew_field attrs[] = {{.name = "axis",
                                         .type = EW_FIELD_INT,
                                         .offset = offsetof(struct ew_concat_attr, axis),
                                         .help = "along which the tensors follow each other"},
                                        EW_FIELD_END};

static int get_axis(const struct ew_call *c, int rank)
{
    const struct ew_concat_attr *a = c->attr;
    return ew_axis_of(a->axis, rank);
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_concat_attr *a = c->attr;
    struct ew_shape out = c->in[0]->shape;
    int axis;
    EW_TRY(ew_shape_axis(a->axis, out.rank, &axis));
    for (int i = 1; i < c->n_in; i++) {
        EW_CHECK(c->in[i], EW_ERR_ARG, "input %d is missing", i);
        const struct ew_shape *s = &c->in[i]->shape;
        EW_TRY(ew_types_same(c, i));
        EW_CHECK(s->rank == out.rank, EW_ERR_SHAPE, "input %d has %d dimensions, input 0 %d", i,
                 s->rank, out.rank);
        for (int k = 0; k < out.rank; k++)
            EW_CHECK(k == axis || s->dim[k] == out.dim[k], EW_ERR_SHAPE,
                     "dimension %d of input %d is %lld, of input 0 %lld", k, i,
                     (long long)s->dim[k], (long long)out.dim[k]);
        out.dim[axis] += s->dim[axis]; /* each is below 2^40: no overflow before the check */
        EW_TRY(ew_shape_check(&out, c->name));
    }
    c->out[0]->shape = out;
    return EW_OK;
}

/* The move of a part of shape `part` that begins at position `at` of the axis. */
static struct ew_move part_move(const struct ew_shape *part, const struct ew_shape *whole, int axis,
                                int64_t at)
{
    struct ew_move m = ew_move_box(part, part, whole);
    m.dst_at = at * m.dst[axis];
    return m;
}

static ew_err forward(const struct ew_call *c)
{
    const int axis = get_axis(c, c->out[0]->shape.rank);
    int64_t at = 0;
    for (int i = 0; i < c->n_in; i++) {
        const struct ew_move m = part_move(&c->in[i]->shape, &c->out[0]->shape, axis, at);
        ew_move_copy(&m, c->in[i], c->out[0]);
        at += c->in[i]->shape.dim[axis];
    }
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    if (!c->dout[0])
        return EW_OK;
    const int axis = get_axis(c, c->dout[0]->shape.rank);
    int64_t at = 0;
    for (int i = 0; i < c->n_in; i++) {
        const struct ew_move m = part_move(&c->in[i]->shape, &c->dout[0]->shape, axis, at);
        if (c->din[i])
            ew_move_back(&m, c->din[i], c->dout[0]);
        at += c->in[i]->shape.dim[axis];
    }
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "rows", .in = {{"2x3"}, {"4x3"}}, .n_in = 2, .out_shape = "6x3"},
    {.name = "middle",
     .attrs = "axis=1",
     .in = {{"2x3x4"}, {"2x1x4"}, {"2x2x4"}},
     .n_in = 3,
     .out_shape = "2x6x4"},
    {.name = "channels last",
     .attrs = "axis=-1",
     .in = {{"2x3x3x5"}, {"2x3x3x1"}},
     .n_in = 2,
     .out_shape = "2x3x3x6"},
    {.name = "bytes",
     .attrs = "axis=-1",
     .in = {{"2x3x3x70", EW_U8, EW_FILL_BYTES}, {"2x3x3x5", EW_U8, EW_FILL_BYTES}},
     .n_in = 2,
     .out_shape = "2x3x3x75"},
    {.name = "one", .in = {{"3"}}, .n_in = 1, .out_shape = "3"},
    {.name = "empty part", .in = {{"2x3"}, {"0x3"}}, .n_in = 2, .out_shape = "2x3"},
    {.name = "int", .in = {{"1", EW_S64}, {"3", EW_S64}}, .n_in = 2, .out_shape = "4"},
};

const struct ew_op ew_op_concat = {
    .name = "concat",
    .help = "tensors one after the other along an axis",
    .flags = EW_OP_CONCAT | EW_OP_ZEROS_PASS,
    .min_in = 1,
    .max_in = -1,
    .attr_size = sizeof(struct ew_concat_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .permute = ew_axis_permute,
    .onnx = {.type = "Concat", .since = 4},
    EW_OP_CASES(cases),
};
