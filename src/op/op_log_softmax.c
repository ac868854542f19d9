/* SPDX-License-Identifier: Apache-2.0 */
/* LogSoftmax: x - log(sum(exp(x))) along an axis. */
#include "op/softmax.h"

static ew_err forward(const struct ew_call *c)
{
    struct ew_lanes l;
    EW_TRY(ew_softmax_lanes(c, &c->in[0]->shape, &l));
    double *v = c->scratch;
    for (int64_t lane = 0; lane < ew_lanes_count(&l); lane++) {
        ew_lane_load(c->in[0], &l, lane, v);
        ew_lane_log_softmax(v, l.n);
        ew_lane_store(c->out[0], &l, lane, v);
    }
    return EW_OK;
}

/* dx = dy - exp(y) sum(dy) */
static ew_err backward(const struct ew_call *c)
{
    struct ew_lanes l;
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    EW_TRY(ew_softmax_lanes(c, &c->dout[0]->shape, &l));
    double *y = c->scratch, *g = y + l.n;
    for (int64_t lane = 0; lane < ew_lanes_count(&l); lane++) {
        ew_lane_load(c->out[0], &l, lane, y);
        ew_lane_load(c->dout[0], &l, lane, g);
        double sum = 0;
        for (int64_t k = 0; k < l.n; k++)
            sum += g[k];
        for (int64_t k = 0; k < l.n; k++)
            g[k] -= exp(y[k]) * sum;
        ew_lane_accumulate(c->din[0], &l, lane, g);
    }
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 5 * ew_tensor_count(c->out[0]); /* maximum, subtract, exp, add, subtract */
}

static const struct ew_op_case cases[] = {
    {.name = "classes", .in = {{"3x7"}}, .n_in = 1, .out_shape = "3x7"},
    {.name = "first axis", .attrs = "axis=0", .in = {{"4x3"}}, .n_in = 1, .out_shape = "4x3"},
    {.name = "flatten",
     .attrs = "axis=1 flatten=true",
     .in = {{"2x3x4"}},
     .n_in = 1,
     .out_shape = "2x3x4"},
};

const struct ew_op ew_op_log_softmax = {
    .name = "log_softmax",
    .help = "x - log(sum(exp(x))) along an axis",
    EW_SOFTMAX_OP("LogSoftmax"),
    .saves = EW_SAVE_OUT,
    .cost = cost,
    .forward = forward,
    .backward = backward,
    EW_OP_CASES(cases),
};
