/* SPDX-License-Identifier: Apache-2.0 */
/* Distillation (Hinton et al., 2015): a loss between scores, labels and a teacher's scores.
 *
 *   loss = (1 - share) CE(labels, p) + share T^2 KL(q_T || p_T)
 *
 * averaged over the samples, where p = softmax(scores), and p_T and q_T are the softmax of scores
 * and teacher's scores divided by the temperature T.  T^2 keeps the gradients of both terms of
 * similar magnitude. */
#include "op/loss.h"

enum { SCORES, LABELS, TEACHER };

static const struct ew_field attrs[] = {
    {.name = "share",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct ew_distillation_attr, share),
     .def = "0.5",
     .min = 0,
     .max = 1,
     .help = "of the teacher in the loss"},
    {.name = "temperature",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct ew_distillation_attr, temperature),
     .def = "4",
     .min = 0.01,
     .max = 1000,
     .help = "that scores are divided by"},
    EW_FIELD_END,
};

static ew_err infer(const struct ew_call *c)
{
    const struct ew_shape *s = &c->in[SCORES]->shape, *t = &c->in[TEACHER]->shape;
    EW_TRY(ew_types_check(c, SCORES, 1 << EW_F32 | 1 << EW_F64));
    EW_TRY(ew_types_same(c, TEACHER));
    EW_TRY(ew_types_check(c, LABELS, 1 << EW_S32 | 1 << EW_S64));
    EW_CHECK(s->rank == 2 && ew_shape_equal(s, t), EW_ERR_SHAPE,
             "scores and the teacher's must be [N, classes] and alike");
    EW_CHECK(c->in[LABELS]->shape.rank == 1 && c->in[LABELS]->shape.dim[0] == s->dim[0],
             EW_ERR_SHAPE, "%lld labels for %lld samples",
             (long long)ew_tensor_count(c->in[LABELS]), (long long)s->dim[0]);
    c->out[0]->dtype = c->in[SCORES]->dtype;
    c->out[0]->shape = (struct ew_shape){0};
    return EW_OK;
}

static size_t scratch(const struct ew_call *c)
{
    return 3 * (size_t)c->in[SCORES]->shape.dim[1] * sizeof(double);
}

/* log softmax of row `i` divided by `by`. */
static void load(const struct ew_tensor *t, int64_t i, double by, double *v)
{
    const int64_t n = t->shape.dim[1];
    ew_tensor_load(t, i * n, n, v);
    for (int64_t k = 0; k < n; k++)
        v[k] /= by;
    ew_lane_log_softmax(v, n);
}

static ew_err label_of(const struct ew_call *c, int64_t i, int64_t *out)
{
    *out = ew_tensor_get_int(c->in[LABELS], i);
    EW_CHECK(*out >= 0 && *out < c->in[SCORES]->shape.dim[1], EW_ERR_ARG,
             "label %lld of sample %lld is outside %lld classes", (long long)*out, (long long)i,
             (long long)c->in[SCORES]->shape.dim[1]);
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_distillation_attr *a = c->attr;
    const int64_t rows = c->in[SCORES]->shape.dim[0], n = c->in[SCORES]->shape.dim[1];
    double *p = c->scratch, *q = p + n, sum = 0;
    const double t = a->temperature;
    for (int64_t i = 0; i < rows; i++) {
        int64_t label;
        EW_TRY(label_of(c, i, &label));
        load(c->in[SCORES], i, 1, p);
        sum -= (1 - a->share) * p[label];
        load(c->in[SCORES], i, t, p);
        load(c->in[TEACHER], i, t, q);
        for (int64_t k = 0; k < n; k++)
            sum += a->share * t * t * exp(q[k]) * (q[k] - p[k]);
    }
    sum /= (double)rows;
    ew_tensor_store(c->out[0], 0, 1, &sum);
    return EW_OK;
}

/* d/dx_k = (1 - share) (p_k - [k = label]) + share T (p_Tk - q_Tk). */
static ew_err backward(const struct ew_call *c)
{
    const struct ew_distillation_attr *a = c->attr;
    const int64_t rows = c->in[SCORES]->shape.dim[0], n = c->in[SCORES]->shape.dim[1];
    double *p = c->scratch, *q = p + n, *g = q + n;
    if (!c->din[SCORES] || !c->dout[0])
        return EW_OK;
    const double up = ew_tensor_get(c->dout[0], 0) / (double)rows;
    for (int64_t i = 0; i < rows; i++) {
        int64_t label;
        EW_TRY(label_of(c, i, &label));
        load(c->in[SCORES], i, 1, p);
        for (int64_t k = 0; k < n; k++)
            g[k] = up * (1 - a->share) * (exp(p[k]) - (k == label ? 1 : 0));
        load(c->in[SCORES], i, a->temperature, p);
        load(c->in[TEACHER], i, a->temperature, q);
        for (int64_t k = 0; k < n; k++)
            g[k] += up * a->share * a->temperature * (exp(p[k]) - exp(q[k]));
        ew_tensor_accumulate(c->din[SCORES], i * n, n, g);
    }
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "half and half",
     .in = {{"4x5"}, {"4", EW_S64, EW_FILL_CLASSES, 5}, {"4x5", .no_grad = true}},
     .n_in = 3,
     .out_shape = ""},
    {.name = "teacher alone, cold",
     .attrs = "share=1 temperature=1",
     .in = {{"3x7"}, {"3", EW_S32, EW_FILL_CLASSES, 7}, {"3x7", .no_grad = true}},
     .n_in = 3,
     .out_shape = ""},
};

const struct ew_op ew_op_distillation = {
    .name = "distillation",
    .help = "cross-entropy against labels and against a teacher's softened scores",
    .saves = EW_SAVE_IN0 | EW_SAVE_IN1 | EW_SAVE_IN2,
    .min_in = 3,
    .max_in = 3,
    .attr_size = sizeof(struct ew_distillation_attr),
    .attrs = attrs,
    .infer = infer,
    .scratch = scratch,
    .forward = forward,
    .backward = backward,
    EW_OP_CASES(cases),
};
