/* SPDX-License-Identifier: Apache-2.0 */
/* Trilu: the upper or lower triangle of matrices, zero elsewhere. */
#include <string.h>

#include "op/move.h"
#include "op/types.h"

struct attr {
    bool upper;
};

static const struct ew_field attrs[] = {{.name = "upper",
                                         .type = EW_FIELD_BOOL,
                                         .offset = offsetof(struct attr, upper),
                                         .def = "true",
                                         .help = "keep the upper triangle, else the lower"},
                                        EW_FIELD_END};

static ew_err infer(const struct ew_call *c)
{
    EW_CHECK(c->in[0]->shape.rank >= 2, EW_ERR_SHAPE, "the input has %d dimensions, needs matrices",
             c->in[0]->shape.rank);
    EW_TRY(ew_types_check(c, 1, EW_TYPES_INDEX));
    EW_CHECK(!ew_call_in(c, 1) || ew_tensor_count(c->in[1]) == 1, EW_ERR_SHAPE,
             "k is not a scalar");
    c->out[0]->shape = c->in[0]->shape;
    return EW_OK;
}

/* The batch of matrices as consecutive rows. */
struct triangle {
    int64_t rows, columns, count; /* count: of all rows of all matrices */
    int64_t k;                    /* diagonal: 0 the main one, positive above */
    bool upper;
};

static struct triangle get_triangle(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    const struct ew_shape *s = &c->in[0]->shape;
    const int64_t far = (int64_t)1 << 41; /* beyond any matrix */
    const int64_t k = ew_call_in(c, 1) ? ew_tensor_get_int(c->in[1], 0) : 0;
    return (struct triangle){.rows = s->dim[s->rank - 2],
                             .columns = s->dim[s->rank - 1],
                             .count = ew_shape_span(s, 0, s->rank - 1),
                             .k = ew_max_i64(-far, ew_min_i64(k, far)),
                             .upper = a->upper};
}

/* The columns [*from, *to) of a row that are kept. */
static void kept(const struct triangle *t, int64_t row, int64_t *from, int64_t *to)
{
    const int64_t diagonal = row % t->rows + t->k;
    *from = t->upper ? ew_max_i64(0, ew_min_i64(diagonal, t->columns)) : 0;
    *to = t->upper ? t->columns : ew_max_i64(0, ew_min_i64(diagonal + 1, t->columns));
}

static ew_err forward(const struct ew_call *c)
{
    const struct triangle t = get_triangle(c);
    const size_t size = ew_dtype_size(c->in[0]->dtype);
    EW_TRY(ew_view_forward(c));
    for (int64_t row = 0; row < t.count; row++) {
        char *out = (char *)c->out[0]->data + (size_t)(row * t.columns) * size;
        int64_t from, to;
        kept(&t, row, &from, &to);
        memset(out, 0, (size_t)from * size);
        memset(out + (size_t)to * size, 0, (size_t)(t.columns - to) * size);
    }
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    const struct triangle t = get_triangle(c);
    for (int64_t row = 0; row < t.count; row++) {
        int64_t from, to;
        kept(&t, row, &from, &to);
        for (int64_t i = from; i < to; i++)
            ew_element_add(c->dout[0], row * t.columns + i, c->din[0], row * t.columns + i);
    }
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "upper", .in = {{"3x4"}}, .n_in = 1, .out_shape = "3x4"},
    {.name = "lower", .attrs = "upper=false", .in = {{"2x4x3"}}, .n_in = 1, .out_shape = "2x4x3"},
    {.name = "above",
     .in = {{"3x4"}, {"", EW_S64, EW_FILL_VALUES, .values = "2", .constant = true}},
     .n_in = 2,
     .out_shape = "3x4"},
    {.name = "far below",
     .attrs = "upper=false",
     .in = {{"3x3", EW_S32}, {"", EW_S64, EW_FILL_VALUES, .values = "-7", .constant = true}},
     .n_in = 2,
     .out_shape = "3x3"},
};

const struct ew_op ew_op_trilu = {
    .name = "trilu",
    .help = "the upper or lower triangle of matrices",
    .flags = EW_OP_INPLACE,
    .saves = EW_SAVE_IN1,
    .min_in = 1,
    .max_in = 2,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Trilu", .since = 14},
    EW_OP_CASES(cases),
};
