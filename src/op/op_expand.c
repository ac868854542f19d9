/* SPDX-License-Identifier: Apache-2.0 */
/* Expand: broadcasts to a shape. */
#include "op/axis.h"
#include "op/move.h"

static ew_err infer(const struct ew_call *c)
{
    struct ew_ints list;
    struct ew_shape want;
    EW_TRY(ew_tensor_ints(c->in[1], "shape", &list));
    EW_CHECK(list.n <= EW_MAX_RANK, EW_ERR_LIMIT, "shape has %d dimensions", list.n);
    want.rank = list.n;
    for (int i = 0; i < list.n; i++)
        want.dim[i] = list.v[i];
    EW_TRY(ew_shape_check(&want, "shape"));
    return ew_shape_broadcast(&c->in[0]->shape, &want, &c->out[0]->shape);
}

/* Repeated dimensions have stride 0 in the source. */
static struct ew_move repeat(const struct ew_shape *in, const struct ew_shape *out)
{
    struct ew_move m = ew_move_box(out, out, out);
    ew_shape_strides(in, out, m.src);
    return m;
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_move m = repeat(&c->in[0]->shape, &c->out[0]->shape);
    ew_move_copy(&m, c->in[0], c->out[0]);
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    const struct ew_move m = repeat(&c->din[0]->shape, &c->dout[0]->shape);
    ew_move_back(&m, c->din[0], c->dout[0]);
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "columns",
     .in = {{"3x1"}, {"3", EW_S64, EW_FILL_VALUES, .values = "2,1,4", .constant = true}},
     .n_in = 2,
     .out_shape = "2x3x4"},
    {.name = "pooled",
     .in = {{"2x3x1x1"}, {"4", EW_S64, EW_FILL_VALUES, .values = "2,1,4,5", .constant = true}},
     .n_in = 2,
     .out_shape = "2x3x4x5"},
    {.name = "smaller shape",
     .in = {{"2x1x3"}, {"1", EW_S64, EW_FILL_VALUES, .values = "1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x1x3"},
    {.name = "scalar, bytes",
     .in = {{"", EW_BOOL}, {"1", EW_S64, EW_FILL_VALUES, .values = "5", .constant = true}},
     .n_in = 2,
     .out_shape = "5"},
};

const struct ew_op ew_op_expand = {
    .name = "expand",
    .help = "broadcasts to a shape",
    .min_in = 2,
    .max_in = 2,
    .known_in = 1 << 1,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .permute = ew_list_permute,
    .onnx = {.type = "Expand", .since = 8},
    EW_OP_CASES(cases),
};
