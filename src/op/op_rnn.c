/* SPDX-License-Identifier: Apache-2.0 */
/* RNN: h = tanh(W x + R h + biases), step by step (Elman 1990). */
#include "op/recurrent.h"

enum { GATES = 1 };

static const struct ew_field attrs[] = {EW_RNN_FIELDS, EW_FIELD_END};

static void step(struct ew_rnn *r)
{
    for (int64_t k = 0; k < r->hidden; k++)
        r->h[k] = ew_rnn_tanh(r, r->from_x[k] + r->from_h[k]);
}

EW_RNN_HOOKS(ew_op_rnn, GATES, step, "Tanh")

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"3x2x4"}, {"1x5x4"}, {"1x5x5"}}, .n_in = 3, .n_out = 2,
     .out_shape = "3x1x2x5"},
    {.name = "both ways, lengths", .attrs = "direction=bidirectional",
     .in = {{"4x2x3"}, {"2x2x3"}, {"2x2x2"}, {"2x4"},
            {"2", EW_S32, EW_FILL_VALUES, .values = "4,2"}, {"2x2x2"}},
     .n_in = 6, .n_out = 2, .out_shape = "4x2x2x2"},
    {.name = "batch first, reverse, clipped", .attrs = "direction=reverse layout=1 clip=0.5",
     .in = {{"2x3x4"}, {"1x5x4"}, {"1x5x5"}, {"1x10"}, {NULL}, {"2x1x5"}}, .n_in = 6, .n_out = 2,
     .out_shape = "2x3x1x5"},
};
/* clang-format on */

const struct ew_op ew_op_rnn = {
    .name = "rnn",
    .help = "a recurrent layer with tanh",
    .max_in = 6,
    .max_out = 2,
    .param_in = 1 << EW_RNN_W | 1 << EW_RNN_R | 1 << EW_RNN_BIAS,
    EW_RNN_OP("RNN"),
    EW_OP_CASES(cases),
};
