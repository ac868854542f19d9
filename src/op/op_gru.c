/* SPDX-License-Identifier: Apache-2.0 */
/* GRU: gates z and r, and h = (1 - z) tanh(...) + z h (Cho et al. 2014). */
#include "op/recurrent.h"

enum { Z, R, H, GATES };

static const struct ew_field attrs[] = {EW_RNN_FIELDS,
                                        {.name = "linear_before_reset",
                                         .type = EW_FIELD_BOOL,
                                         EW_RNN_AT(linear_before_reset),
                                         .help = "r multiplies R h, not h"},
                                        EW_FIELD_END};

static void step(struct ew_rnn *r)
{
    const int64_t n = r->hidden;
    double *from_h = r->from_h + H * n;
    for (int64_t k = 0; k < n; k++)
        r->tmp[k] = ew_rnn_sigmoid(r, r->from_x[R * n + k] + r->from_h[R * n + k]);
    if (r->a->linear_before_reset) {
        for (int64_t k = 0; k < n; k++)
            from_h[k] *= r->tmp[k];
    } else {
        for (int64_t k = 0; k < n; k++)
            r->tmp[k] *= r->h[k];
        ew_rnn_recur(r, H, r->tmp, from_h);
    }
    for (int64_t k = 0; k < n; k++) {
        const double z = ew_rnn_sigmoid(r, r->from_x[Z * n + k] + r->from_h[Z * n + k]);
        r->h[k] = (1 - z) * ew_rnn_tanh(r, r->from_x[H * n + k] + from_h[k]) + z * r->h[k];
    }
}

EW_RNN_HOOKS(ew_op_gru, GATES, step, "Sigmoid,Tanh")

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"3x2x4"}, {"1x15x4"}, {"1x15x5"}}, .n_in = 3, .n_out = 2,
     .out_shape = "3x1x2x5"},
    {.name = "linear before reset, both ways",
     .attrs = "direction=bidirectional linear_before_reset=true",
     .in = {{"4x2x3"}, {"2x6x3"}, {"2x6x2"}, {"2x12"},
            {"2", EW_S32, EW_FILL_VALUES, .values = "0,3"}, {"2x2x2"}},
     .n_in = 6, .n_out = 2, .out_shape = "4x2x2x2"},
    {.name = "batch first", .attrs = "layout=1",
     .in = {{"2x3x4"}, {"1x15x4"}, {"1x15x5"}, {"1x30"}}, .n_in = 4, .n_out = 2,
     .out_shape = "2x3x1x5"},
};
/* clang-format on */

const struct ew_op ew_op_gru = {
    .name = "gru",
    .help = "a recurrent layer of gated units",
    .max_in = 6,
    .max_out = 2,
    .param_in = 1 << EW_RNN_W | 1 << EW_RNN_R | 1 << EW_RNN_BIAS,
    EW_RNN_OP("GRU"),
    EW_OP_CASES(cases),
};
