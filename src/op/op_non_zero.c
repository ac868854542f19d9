/* SPDX-License-Identifier: Apache-2.0 */
/* NonZero: indices of non-zero elements.  The input must be known at inference, since the size of
 * the output depends on it. */
#include "op/move.h"
#include "op/walk.h"

static bool is_set(const struct ew_tensor *t, int64_t i)
{
    const double v = ew_tensor_get(t, i);
    return v < 0 || v > 0 || !(v <= 0);
}

static ew_err infer(const struct ew_call *c)
{
    int64_t n = 0;
    for (int64_t i = 0; i < ew_tensor_count(c->in[0]); i++)
        n += is_set(c->in[0], i);
    c->out[0]->dtype = EW_S64;
    c->out[0]->shape = (struct ew_shape){2, {c->in[0]->shape.rank, n}};
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    const int64_t n = c->out[0]->shape.dim[1];
    int64_t *out = c->out[0]->data, found = 0;
    struct ew_walk w = ew_walk_begin(&c->in[0]->shape);
    for (int64_t i = 0; i < ew_tensor_count(c->in[0]) && found < n; i++, ew_walk_next(&w)) {
        if (!is_set(c->in[0], i))
            continue;
        for (int k = 0; k < w.shape.rank; k++)
            out[k * n + found] = w.at[k];
        found++;
    }
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "matrix",
     .in = {{"2x3", EW_F32, EW_FILL_VALUES, .values = "0,1,0,2,0,-3", .constant = true}},
     .n_in = 1,
     .out_shape = "2x3"},
    {.name = "none",
     .in = {{"3", EW_BOOL, EW_FILL_VALUES, .values = "0,0,0", .constant = true}},
     .n_in = 1,
     .out_shape = "1x0"},
};

const struct ew_op ew_op_non_zero = {
    .name = "non_zero",
    .help = "where the elements that are not zero are",
    .min_in = 1,
    .max_in = 1,
    .known_in = 1 << 0,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .onnx = {.type = "NonZero", .since = 9},
    EW_OP_CASES(cases),
};
