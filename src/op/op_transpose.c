/* SPDX-License-Identifier: Apache-2.0 */
/* Transpose: permutes the axes. */
#include "graph/layout.h"
#include "op/move.h"

static const struct ew_field attrs[] = {
    {.name = "perm",
     .type = EW_FIELD_INTS,
     .offset = offsetof(struct ew_transpose_attr, perm),
     .help = "axis i of the output is axis perm[i] of the input; empty: reversed"},
    EW_FIELD_END};

static void get_perm(const struct ew_call *c, int rank, int *perm)
{
    const struct ew_transpose_attr *a = c->attr;
    for (int i = 0; i < rank; i++)
        perm[i] = a->perm.n ? (int)a->perm.v[i] : rank - 1 - i;
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_transpose_attr *a = c->attr;
    const int rank = c->in[0]->shape.rank;
    EW_CHECK(a->perm.n == 0 || a->perm.n == rank, EW_ERR_SHAPE, "perm has %d axes, the input %d",
             a->perm.n, rank);
    unsigned seen = 0;
    for (int i = 0; i < a->perm.n; i++) {
        EW_CHECK(a->perm.v[i] >= 0 && a->perm.v[i] < rank && !(seen >> a->perm.v[i] & 1),
                 EW_ERR_SHAPE, "perm is not a permutation of %d axes", rank);
        seen |= 1u << a->perm.v[i];
    }
    int perm[EW_MAX_RANK];
    get_perm(c, rank, perm);
    c->out[0]->shape.rank = rank;
    for (int i = 0; i < rank; i++)
        c->out[0]->shape.dim[i] = c->in[0]->shape.dim[perm[i]];
    return EW_OK;
}

/* The box is the output's shape; the input is read with strides. */
static struct ew_move turn(const struct ew_call *c)
{
    const struct ew_shape *in = &c->in[0]->shape;
    int perm[EW_MAX_RANK];
    get_perm(c, in->rank, perm);
    const struct ew_move whole = ew_move_box(in, in, in);
    struct ew_move m = {.box.rank = in->rank};
    for (int i = 0; i < in->rank; i++) {
        m.box.dim[i] = in->dim[perm[i]];
        m.src[i] = whole.src[perm[i]];
    }
    ew_shape_strides(&m.box, &m.box, m.dst);
    return m;
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_move m = turn(c);
    ew_move_copy(&m, c->in[0], c->out[0]);
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    const struct ew_move m = turn(c);
    ew_move_back(&m, c->din[0], c->dout[0]);
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "bytes to channels last",
     .attrs = "perm=0,2,3,1",
     .in = {{"2x3x5x7", EW_U8, EW_FILL_BYTES}},
     .n_in = 1,
     .out_shape = "2x5x7x3"},
    {.name = "bytes to channels first",
     .attrs = "perm=0,3,1,2",
     .in = {{"2x5x17x70", EW_S8, EW_FILL_BYTES}},
     .n_in = 1,
     .out_shape = "2x70x5x17"},
    {.name = "reversed", .in = {{"2x3x4"}}, .n_in = 1, .out_shape = "4x3x2"},
    {.name = "nchw to nhwc",
     .attrs = "perm=0,2,3,1",
     .in = {{"2x3x4x5"}},
     .n_in = 1,
     .out_shape = "2x4x5x3"},
    {.name = "bytes", .attrs = "perm=1,0", .in = {{"3x5", EW_S8}}, .n_in = 1, .out_shape = "5x3"},
};

const struct ew_op ew_op_transpose = {
    .name = "transpose",
    .help = "axes in another order",
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_transpose_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Transpose"},
    EW_OP_CASES(cases),
};
