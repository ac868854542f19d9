/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax: exp(x) / sum(exp(x)) along an axis. */
#include "op/softmax.h"

static ew_err forward(const struct ew_call *c)
{
    struct ew_lanes l;
    EW_TRY(ew_softmax_lanes(c, &c->in[0]->shape, &l));
    double *v = c->scratch;
    for (int64_t lane = 0; lane < ew_lanes_count(&l); lane++) {
        ew_lane_load(c->in[0], &l, lane, v);
        double most = -INFINITY, sum = 0;
        for (int64_t k = 0; k < l.n; k++)
            most = fmax(most, v[k]);
        for (int64_t k = 0; k < l.n; k++)
            sum += v[k] = exp(v[k] - most);
        for (int64_t k = 0; k < l.n; k++)
            v[k] /= sum;
        ew_lane_store(c->out[0], &l, lane, v);
    }
    return EW_OK;
}

/* dx = y (dy - sum(y dy)) */
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
        double dot = 0;
        for (int64_t k = 0; k < l.n; k++)
            dot += y[k] * g[k];
        for (int64_t k = 0; k < l.n; k++)
            g[k] = y[k] * (g[k] - dot);
        ew_lane_accumulate(c->din[0], &l, lane, g);
    }
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 5 * ew_tensor_count(c->out[0]); /* maximum, subtract, exp, add, divide */
}

static const struct ew_op_case cases[] = {
    {.name = "classes", .in = {{"3x7"}}, .n_in = 1, .out_shape = "3x7"},
    {.name = "more classes", .in = {{"2x37"}}, .n_in = 1, .out_shape = "2x37"},
    {.name = "middle axis", .attrs = "axis=1", .in = {{"2x5x3"}}, .n_in = 1, .out_shape = "2x5x3"},
    {.name = "flatten",
     .attrs = "axis=1 flatten=true",
     .in = {{"2x3x4"}},
     .n_in = 1,
     .out_shape = "2x3x4"},
    {.name = "one class", .in = {{"4x1"}}, .n_in = 1, .out_shape = "4x1"},
    {.name = "nothing", .in = {{"0x3"}}, .n_in = 1, .out_shape = "0x3"},
    {.name = "no classes", .in = {{"3x0"}}, .n_in = 1, .out_shape = "3x0"},
};

const struct ew_op ew_op_softmax = {
    .name = "softmax",
    .help = "exp(x) / sum(exp(x)) along an axis",
    EW_SOFTMAX_OP("Softmax"),
    .saves = EW_SAVE_OUT,
    .cost = cost,
    .forward = forward,
    .backward = backward,
    EW_OP_CASES(cases),
};
