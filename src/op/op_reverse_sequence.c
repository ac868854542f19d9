/* SPDX-License-Identifier: Apache-2.0 */
/* ReverseSequence: the first `length` steps of each sequence of a batch, backwards. */
#include "op/move.h"
#include "op/types.h"

struct attr {
    int64_t batch_axis, time_axis;
};

static const struct ew_field attrs[] = {{.name = "batch_axis",
                                         .type = EW_FIELD_INT,
                                         .offset = offsetof(struct attr, batch_axis),
                                         .def = "1",
                                         .max = 1,
                                         .help = "which of the first two axes is the batch"},
                                        {.name = "time_axis",
                                         .type = EW_FIELD_INT,
                                         .offset = offsetof(struct attr, time_axis),
                                         .max = 1,
                                         .help = "which of the first two axes is time"},
                                        EW_FIELD_END};

static ew_err infer(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    const struct ew_shape *s = &c->in[0]->shape;
    EW_CHECK(s->rank >= 2, EW_ERR_SHAPE, "the input has %d dimensions, needs batch and time",
             s->rank);
    EW_CHECK(a->batch_axis != a->time_axis, EW_ERR_ARG, "batch and time are both axis %lld",
             (long long)a->time_axis);
    EW_TRY(ew_types_check(c, 1, EW_TYPES_INDEX));
    EW_CHECK(c->in[1]->shape.rank == 1 && c->in[1]->shape.dim[0] == s->dim[a->batch_axis],
             EW_ERR_SHAPE, "%lld lengths for a batch of %lld", (long long)ew_tensor_count(c->in[1]),
             (long long)s->dim[a->batch_axis]);
    c->out[0]->shape = *s;
    return EW_OK;
}

/* The move of sequence b: its first `length` steps reversed, or the rest unchanged. */
static ew_err sequence(const struct ew_call *c, int64_t b, bool head, struct ew_move *out)
{
    const struct attr *a = c->attr;
    const struct ew_shape *s = &c->in[0]->shape;
    const int64_t length = ew_tensor_get_int(c->in[1], b), steps = s->dim[a->time_axis];
    EW_CHECK(length >= 0 && length <= steps, EW_ERR_ARG, "length %lld is outside %lld steps",
             (long long)length, (long long)steps);
    struct ew_move m = ew_move_box(s, s, s);
    const int t = (int)a->time_axis;
    m.box.dim[a->batch_axis] = 1;
    m.box.dim[t] = head ? length : steps - length;
    m.src_at = m.dst_at = b * m.src[a->batch_axis];
    m.src_at += (head ? ew_max_i64(length - 1, 0) : length) * m.src[t];
    m.dst_at += (head ? 0 : length) * m.dst[t];
    m.src[t] = head ? -m.src[t] : m.src[t];
    *out = m;
    return EW_OK;
}

static ew_err run(const struct ew_call *c, bool back)
{
    for (int64_t i = 0; i < 2 * ew_tensor_count(c->in[1]); i++) {
        struct ew_move m;
        EW_TRY(sequence(c, i / 2, i % 2 == 0, &m));
        ew_move_either(&m, c, back);
    }
    return EW_OK;
}

EW_MOVE_HOOKS(run)

static const struct ew_op_case cases[] = {
    {.name = "time first",
     .in = {{"4x3x2"}, {"3", EW_S64, EW_FILL_VALUES, .values = "4,1,2", .constant = true}},
     .n_in = 2,
     .out_shape = "4x3x2"},
    {.name = "batch first",
     .attrs = "batch_axis=0 time_axis=1",
     .in = {{"3x4"}, {"3", EW_S64, EW_FILL_VALUES, .values = "0,3,4", .constant = true}},
     .n_in = 2,
     .out_shape = "3x4"},
};

const struct ew_op ew_op_reverse_sequence = {
    .name = "reverse_sequence",
    .help = "the first steps of each sequence, backwards",
    .saves = EW_SAVE_IN1,
    .min_in = 2,
    .max_in = 2,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "ReverseSequence", .since = 10},
    EW_OP_CASES(cases),
};
