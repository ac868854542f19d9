/* SPDX-License-Identifier: Apache-2.0 */
/* NegativeLogLikelihoodLoss: minus the weighted log probability at the label. */
#include "op/loss.h"

static const struct ew_field attrs[] = {
    EW_LOSS_FIELDS,
    EW_FIELD_END,
};

static const char *const rename[] = {"axis", NULL, NULL};

static ew_err forward(const struct ew_call *c)
{
    const struct ew_loss_attr *a = c->attr;
    const struct ew_lanes l = ew_loss_lanes(c);
    double sum = 0, divisor;
    EW_TRY(ew_loss_divisor(c, &l, &divisor));
    for (int64_t i = 0; i < ew_lanes_count(&l); i++) {
        int64_t label;
        EW_TRY(ew_loss_label(c, i, l.n, &label));
        double loss = 0;
        if (label >= 0)
            loss = -ew_loss_weight(c, label) *
                   ew_tensor_get(c->in[0], ew_lane_start(&l, i) + label * l.inner);
        sum += loss;
        if (a->reduction == EW_LOSS_NONE)
            ew_tensor_store(c->out[0], i, 1, &loss);
    }
    sum /= divisor;
    if (a->reduction != EW_LOSS_NONE)
        ew_tensor_store(c->out[0], 0, 1, &sum);
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    const struct ew_lanes l = ew_loss_lanes(c);
    double divisor;
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    EW_TRY(ew_loss_divisor(c, &l, &divisor));
    for (int64_t i = 0; i < ew_lanes_count(&l); i++) {
        int64_t label;
        EW_TRY(ew_loss_label(c, i, l.n, &label));
        if (label < 0)
            continue;
        const double g = -ew_loss_weight(c, label) * ew_loss_gradient(c, i, divisor);
        ew_tensor_accumulate(c->din[0], ew_lane_start(&l, i) + label * l.inner, 1, &g);
    }
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "mean",
     .in = {{"4x5"}, {"4", EW_S64, EW_FILL_CLASSES, 5}},
     .n_in = 2,
     .out_shape = ""},
    {.name = "weights, ignore",
     .attrs = "ignore_index=2",
     .in = {{"6x4"},
            {"6", EW_S64, EW_FILL_VALUES, .values = "0,2,1,3,2,0"},
            {"4", EW_F32, EW_FILL_POSITIVE, .no_grad = true}},
     .n_in = 3,
     .out_shape = ""},
    {.name = "pixels",
     .attrs = "reduction=none",
     .in = {{"2x3x2x4"}, {"2x2x4", EW_S32, EW_FILL_CLASSES, 3}},
     .n_in = 2,
     .out_shape = "2x2x4"},
    {.name = "sum, channels last",
     .attrs = "reduction=sum axis=-1",
     .in = {{"2x2x4x3"}, {"2x2x4", EW_S64, EW_FILL_CLASSES, 3}},
     .n_in = 2,
     .out_shape = ""},
};

const struct ew_op ew_op_nll_loss = {
    .name = "nll_loss",
    .help = "minus the log probability at the label",
    .saves = EW_SAVE_IN1 | EW_SAVE_IN2,
    .min_in = 2,
    .max_in = 3,
    .attr_size = sizeof(struct ew_loss_attr),
    .attrs = attrs,
    .infer = ew_loss_infer,
    .forward = forward,
    .backward = backward,
    .permute = ew_loss_permute,
    .onnx = {.type = "NegativeLogLikelihoodLoss",
             .since = 12,
             .rename = rename,
             .export = ew_loss_export},
    EW_OP_CASES(cases),
};
