/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM: c = f c + i tanh(...), h = o tanh(c) (Hochreiter and Schmidhuber 1997), with peepholes. */
#include "op/recurrent.h"

enum { I, O, F, C, GATES };
enum { PEEP_I, PEEP_O, PEEP_F };

static const struct ew_field attrs[] = {EW_RNN_FIELDS,
                                        {.name = "input_forget",
                                         .type = EW_FIELD_BOOL,
                                         EW_RNN_AT(input_forget),
                                         .help = "the forget gate is 1 less the input gate"},
                                        EW_FIELD_END};

static double peephole(const struct ew_rnn *r, int which, int64_t k, double cell)
{
    const struct ew_tensor *p = ew_call_in(r->c, EW_RNN_PEEPHOLES);
    return p ? ew_tensor_get(p, (3 * r->direction + which) * r->hidden + k) * cell : 0;
}

static double gate(const struct ew_rnn *r, int which, int64_t k)
{
    return r->from_x[which * r->hidden + k] + r->from_h[which * r->hidden + k];
}

static void step(struct ew_rnn *r)
{
    for (int64_t k = 0; k < r->hidden; k++) {
        const double old = r->cell[k];
        const double in = ew_rnn_sigmoid(r, gate(r, I, k) + peephole(r, PEEP_I, k, old));
        const double forget = r->a->input_forget
                                  ? 1 - in
                                  : ew_rnn_sigmoid(r, gate(r, F, k) + peephole(r, PEEP_F, k, old));
        r->cell[k] = forget * old + in * ew_rnn_tanh(r, gate(r, C, k));
        const double out = ew_rnn_sigmoid(r, gate(r, O, k) + peephole(r, PEEP_O, k, r->cell[k]));
        r->h[k] = out * ew_rnn_tanh(r, r->cell[k]);
    }
}

EW_RNN_HOOKS(ew_op_lstm, GATES, step, "Sigmoid,Tanh,Tanh")

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"3x2x4"}, {"1x20x4"}, {"1x20x5"}}, .n_in = 3, .n_out = 3,
     .out_shape = "3x1x2x5"},
    {.name = "peepholes, both ways", .attrs = "direction=bidirectional",
     .in = {{"4x2x3"}, {"2x8x3"}, {"2x8x2"}, {"2x16"},
            {"2", EW_S32, EW_FILL_VALUES, .values = "4,2"}, {"2x2x2"}, {"2x2x2"}, {"2x6"}},
     .n_in = 8, .n_out = 3, .out_shape = "4x2x2x2"},
    {.name = "batch first, coupled", .attrs = "layout=1 input_forget=true",
     .in = {{"2x3x4"}, {"1x20x4"}, {"1x20x5"}, {"1x40"}}, .n_in = 4, .n_out = 3,
     .out_shape = "2x3x1x5"},
};
/* clang-format on */

const struct ew_op ew_op_lstm = {
    .name = "lstm",
    .help = "a recurrent layer of long short-term memory",
    .max_in = 8,
    .max_out = 3,
    .param_in = 1 << EW_RNN_W | 1 << EW_RNN_R | 1 << EW_RNN_BIAS,
    EW_RNN_OP("LSTM"),
    EW_OP_CASES(cases),
};
