/* SPDX-License-Identifier: Apache-2.0 */
/* SoftmaxCrossEntropyLoss: minus the log of the softmax of scores at the label.
 *
 * With smoothing e and K classes the target of class k is t_k = (1 - e) w_l [k = l] + e / K w_k;
 * a sample's loss is -sum_k t_k log p_k, and the mean divides by the sum of w_l. */
#include "op/loss.h"

static const struct ew_field attrs[] = {
    EW_LOSS_FIELDS,
    {.name = "smoothing",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct ew_loss_attr, smoothing),
     .min = 0,
     .max = 1,
     .help = "share of the target that goes to all classes alike"},
    EW_FIELD_END,
};

static const char *const rename[] = {"axis", NULL, "smoothing", NULL, NULL};

static ew_err infer(const struct ew_call *c)
{
    EW_TRY(ew_loss_infer(c));
    struct ew_tensor *log_prob = ew_call_out(c, 1);
    if (log_prob) {
        log_prob->dtype = c->in[0]->dtype;
        log_prob->shape = c->in[0]->shape;
    }
    return EW_OK;
}

static size_t scratch(const struct ew_call *c)
{
    return 3 * (size_t)ew_loss_lanes(c).n * sizeof(double);
}

static double target(const struct ew_call *c, int64_t k, int64_t label, int64_t classes)
{
    const struct ew_loss_attr *a = c->attr;
    const double hit = k == label ? (1 - a->smoothing) * ew_loss_weight(c, label) : 0;
    return a->smoothing > 0 ? hit + a->smoothing / (double)classes * ew_loss_weight(c, k) : hit;
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_loss_attr *a = c->attr;
    const struct ew_lanes l = ew_loss_lanes(c);
    struct ew_tensor *log_prob = ew_call_out(c, 1);
    double *v = c->scratch, sum = 0, divisor;
    EW_TRY(ew_loss_divisor(c, &l, &divisor));
    for (int64_t i = 0; i < ew_lanes_count(&l); i++) {
        int64_t label;
        EW_TRY(ew_loss_label(c, i, l.n, &label));
        ew_lane_load(c->in[0], &l, i, v);
        ew_lane_log_softmax(v, l.n);
        if (log_prob)
            ew_lane_store(log_prob, &l, i, v);
        double loss = 0;
        for (int64_t k = 0; label >= 0 && k < l.n; k++)
            if (k == label || a->smoothing > 0)
                loss -= target(c, k, label, l.n) * v[k];
        sum += loss;
        if (a->reduction == EW_LOSS_NONE)
            ew_tensor_store(c->out[0], i, 1, &loss);
    }
    sum /= divisor;
    if (a->reduction != EW_LOSS_NONE)
        ew_tensor_store(c->out[0], 0, 1, &sum);
    return EW_OK;
}

/* d loss / d x_k = p_k sum(t) - t_k, and for log_prob: g_k - p_k sum(g). */
static ew_err backward(const struct ew_call *c)
{
    const struct ew_lanes l = ew_loss_lanes(c);
    double *p = c->scratch, *g = p + l.n, *t = g + l.n, divisor;
    const struct ew_tensor *dlog = c->n_out > 1 ? c->dout[1] : NULL;
    if (!c->din[0])
        return EW_OK;
    EW_TRY(ew_loss_divisor(c, &l, &divisor));
    for (int64_t i = 0; i < ew_lanes_count(&l); i++) {
        int64_t label;
        EW_TRY(ew_loss_label(c, i, l.n, &label));
        ew_lane_load(c->in[0], &l, i, p);
        ew_lane_log_softmax(p, l.n);
        const double up = label < 0 ? 0 : ew_loss_gradient(c, i, divisor);
        for (int64_t k = 0; k < l.n; k++)
            g[k] = 0;
        if (dlog)
            ew_lane_load(dlog, &l, i, g);
        double sum = 0;
        for (int64_t k = 0; k < l.n; k++) {
            t[k] = label < 0 ? 0 : target(c, k, label, l.n);
            g[k] -= up * t[k]; /* now the gradient of log p_k */
            sum += g[k];
        }
        for (int64_t k = 0; k < l.n; k++)
            g[k] -= exp(p[k]) * sum;
        ew_lane_accumulate(c->din[0], &l, i, g);
    }
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 5 * ew_tensor_count(c->in[0]);
}

static const struct ew_op_case cases[] = {
    {.name = "mean",
     .in = {{"4x5"}, {"4", EW_S64, EW_FILL_CLASSES, 5}},
     .n_in = 2,
     .out_shape = ""},
    {.name = "sum, weights",
     .attrs = "reduction=sum",
     .in = {{"4x5"},
            {"4", EW_S32, EW_FILL_CLASSES, 5},
            {"5", EW_F32, EW_FILL_POSITIVE, .no_grad = true}},
     .n_in = 3,
     .out_shape = ""},
    {.name = "mean, weights, smoothing, ignore",
     .attrs = "smoothing=0.2 ignore_index=2",
     .in = {{"6x4"},
            {"6", EW_S64, EW_FILL_VALUES, .values = "0,2,1,3,2,0"},
            {"4", EW_F32, EW_FILL_POSITIVE, .no_grad = true}},
     .n_in = 3,
     .out_shape = ""},
    {.name = "pixels",
     .attrs = "reduction=none",
     .in = {{"2x3x2x4"}, {"2x2x4", EW_S64, EW_FILL_CLASSES, 3}},
     .n_in = 2,
     .n_out = 2,
     .out_shape = "2x2x4"},
    {.name = "channels last",
     .attrs = "axis=-1",
     .in = {{"2x2x4x3"}, {"2x2x4", EW_S64, EW_FILL_CLASSES, 3}},
     .n_in = 2,
     .n_out = 2,
     .out_shape = ""},
};

const struct ew_op ew_op_softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .help = "minus the log of the softmax of scores at the label",
    .saves = EW_SAVE_IN0 | EW_SAVE_IN1 | EW_SAVE_IN2,
    .min_in = 2,
    .max_in = 3,
    .max_out = 2,
    .attr_size = sizeof(struct ew_loss_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .scratch = scratch,
    .forward = forward,
    .backward = backward,
    .permute = ew_loss_permute,
    .onnx = {.type = "SoftmaxCrossEntropyLoss",
             .since = 12,
             .rename = rename,
             .export = ew_loss_export},
    EW_OP_CASES(cases),
};
