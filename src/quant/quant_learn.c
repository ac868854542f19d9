/* SPDX-License-Identifier: Apache-2.0 */
/* Networks for quantisation-aware training. */
#include "quant/quant_learn.h"

#include <stdlib.h>

#include "edgewise.h"
#include "quant/quant_impl.h"
#include "quant/remedies.h"

/* Parameters from the passes' constants, except what is a constant of the network itself. */
static ew_err mark_params(const struct ew_graph *net, struct ew_graph *g)
{
    EW_TRY(ew_graph_mark_params(g));
    for (int i = 0; i < g->n_values; i++) {
        const int v = ew_graph_find(net, g->values[i].name);
        if (v >= 0 && net->values[v].kind == EW_VALUE_CONST && g->values[i].kind == EW_VALUE_PARAM)
            g->values[i].kind = EW_VALUE_CONST;
    }
    return EW_OK;
}

static ew_err build(const struct ew_quant_job *job, const struct ew_quant_variant *v,
                    struct ew_graph **out)
{
    const struct ew_quantize_opts o = {.scheme = job->opts.scheme,
                                       .ranges = v->ranges,
                                       .is_signed = job->opts.is_signed,
                                       .positions = v->positions,
                                       .learn = true};
    EW_TRY(ew_graph_clone(v->g, out));
    EW_TRY(ew_quantize(*out, &o));
    EW_TRY(ew_quant_own_weights(*out));
    EW_TRY(ew_graph_set_batch(*out, 1));
    return mark_params(job->net, *out);
}

/* Training starts from the best post-training quantisation. */
static ew_err learn(const struct ew_quant_job *job, struct ew_graph **out)
{
    struct ew_quant_probe probe = {0};
    struct ew_quant_result tried = {0};
    struct ew_quant_remedies remedies = {.job = job, .probe = &probe, .out = &tried};
    ew_err e = ew_quantize_check_float(job->net);
    if (e == EW_OK)
        e = ew_quant_probe_fill(job, &probe);
    if (e == EW_OK)
        e = ew_quant_remedies_try(&remedies);
    if (e == EW_OK)
        e = build(job, remedies.best, out);
    ew_quant_remedies_fini(&remedies);
    ew_quant_probe_fini(&probe);
    return e;
}

ew_err ew_quant_learn(const struct ew_quant_job *job, struct ew_graph **out)
{
    const struct ew_shape *in = &job->net->values[job->net->inputs[0]].t.shape;
    struct ew_quant_job own = *job;
    *out = NULL;
    own.calibration.shuffle = own.calibration.drop_last = false;
    own.calibration.augment = (struct ew_augment){0};
    ew_loader_fit(&own.calibration, in);
    const ew_err e = learn(&own, out);
    if (e != EW_OK) {
        ew_graph_free(*out);
        *out = NULL;
    }
    return e;
}

ew_err ew_quant_learn_data(const struct ew_quant_learn_opts *how, struct ew_graph **out)
{
    struct ew_quant_job job = {
        .net = how->net,
        .calibration = {.data = how->data,
                        .split = EW_SPLIT_TRAIN,
                        .workers = 1,
                        .prep = how->prep},
        .opts = {.scheme = how->pow2 ? EW_QUANTIZE_POW2 : EW_QUANTIZE_CHANNEL,
                 .equalize = how->pow2,
                 .correct_bias = how->pow2,
                 .threads = how->threads},
        .talk = how->talk};
    int64_t *subset;
    EW_TRY(ew_loader_subsample(&job.calibration, how->images, &subset));
    const ew_err e = ew_quant_learn(&job, out);
    free(subset);
    return e;
}
