/* SPDX-License-Identifier: Apache-2.0 */
/* Hardmax: 1 at the first of the largest elements along an axis, 0 elsewhere. */
#include "op/softmax.h"

static ew_err forward(const struct ew_call *c)
{
    struct ew_lanes l;
    EW_TRY(ew_softmax_lanes(c, &c->in[0]->shape, &l));
    double *v = c->scratch;
    for (int64_t lane = 0; lane < ew_lanes_count(&l) && l.n > 0; lane++) {
        ew_lane_load(c->in[0], &l, lane, v);
        int64_t best = 0;
        for (int64_t k = 1; k < l.n; k++)
            best = v[k] > v[best] ? k : best;
        for (int64_t k = 0; k < l.n; k++)
            v[k] = k == best;
        ew_lane_store(c->out[0], &l, lane, v);
    }
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "classes", .in = {{"3x7"}}, .n_in = 1, .out_shape = "3x7"},
    {.name = "first axis", .attrs = "axis=0", .in = {{"4x3"}}, .n_in = 1, .out_shape = "4x3"},
};

const struct ew_op ew_op_hardmax = {
    .name = "hardmax",
    .help = "1 at the largest element along an axis, 0 elsewhere",
    EW_SOFTMAX_OP("Hardmax"),
    .forward = forward,
    EW_OP_CASES(cases),
};
