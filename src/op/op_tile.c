/* SPDX-License-Identifier: Apache-2.0 */
/* Tile: repeats the tensor along each axis. */
#include "op/axis.h"
#include "op/move.h"
#include "op/walk.h"

static ew_err infer(const struct ew_call *c)
{
    const struct ew_shape *in = &c->in[0]->shape;
    struct ew_ints repeats;
    EW_TRY(ew_tensor_ints(c->in[1], "repeats", &repeats));
    EW_CHECK(repeats.n == in->rank, EW_ERR_SHAPE, "%d repeats for %d dimensions", repeats.n,
             in->rank);
    c->out[0]->shape.rank = in->rank;
    for (int i = 0; i < in->rank; i++) {
        EW_CHECK(repeats.v[i] >= 0, EW_ERR_ARG, "repeat %d is %lld", i, (long long)repeats.v[i]);
        EW_CHECK(!__builtin_mul_overflow(in->dim[i], repeats.v[i], &c->out[0]->shape.dim[i]),
                 EW_ERR_LIMIT, "repeat %d is %lld", i, (long long)repeats.v[i]);
    }
    return EW_OK;
}

/* Copies the tiles; `back`: adds their gradients. */
static void run(const struct ew_call *c, const struct ew_shape *out, bool back)
{
    const struct ew_shape *in = &c->in[0]->shape;
    struct ew_shape tiles = *in;
    struct ew_move m = ew_move_box(in, in, out);
    if (ew_shape_count(out) == 0)
        return;
    for (int i = 0; i < in->rank; i++)
        tiles.dim[i] = out->dim[i] / in->dim[i];
    struct ew_walk w = ew_walk_begin(&tiles);
    for (int i = 0; i < in->rank; i++)
        w.stride[0][i] = m.dst[i] * in->dim[i];
    for (int64_t t = 0; t < ew_shape_count(&tiles); t++, ew_walk_next(&w)) {
        m.dst_at = w.pos[0];
        if (back)
            ew_move_back(&m, c->din[0], c->dout[0]);
        else
            ew_move_copy(&m, c->in[0], c->out[0]);
    }
}

static ew_err forward(const struct ew_call *c)
{
    run(c, &c->out[0]->shape, false);
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    if (c->din[0] && c->dout[0])
        run(c, &c->dout[0]->shape, true);
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "both",
     .in = {{"2x3"}, {"2", EW_S64, EW_FILL_VALUES, .values = "2,3", .constant = true}},
     .n_in = 2,
     .out_shape = "4x9"},
    {.name = "channels",
     .in = {{"2x1x2x3"}, {"4", EW_S64, EW_FILL_VALUES, .values = "1,3,1,1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x3x2x3"},
    {.name = "none",
     .in = {{"2x3"}, {"2", EW_S64, EW_FILL_VALUES, .values = "1,0", .constant = true}},
     .n_in = 2,
     .out_shape = "2x0"},
    {.name = "bytes",
     .in = {{"2", EW_U8}, {"1", EW_S64, EW_FILL_VALUES, .values = "3", .constant = true}},
     .n_in = 2,
     .out_shape = "6"},
};

const struct ew_op ew_op_tile = {
    .name = "tile",
    .help = "the tensor several times along each axis",
    .min_in = 2,
    .max_in = 2,
    .known_in = 1 << 1,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .permute = ew_list_permute,
    .onnx = {.type = "Tile", .since = 6},
    EW_OP_CASES(cases),
};
