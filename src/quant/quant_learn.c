/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that learn for integers. */
#include "quant/quant_learn.h"

#include "edgewise.h"
#include "quant/quant_impl.h"

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
    ew_graph_mark_params(*out);
    return EW_OK;
}

ew_err ew_quant_learn(const struct ew_quant_job *job, struct ew_graph **out)
{
    const struct ew_shape *in = &job->net->values[job->net->inputs[0]].t.shape;
    struct ew_quant_job own = *job;
    struct ew_quant_variant v = {0};
    *out = NULL;
    own.calibration.shuffle = own.calibration.drop_last = false;
    own.calibration.augment = (struct ew_augment){0};
    ew_loader_fit(&own.calibration, in);
    ew_err e = ew_quant_check_float(job->net);
    if (e == EW_OK)
        e = ew_quant_observe(&own, job->net, "calibrating", &v);
    if (e == EW_OK)
        e = build(&own, &v, out);
    ew_quant_variant_fini(&v);
    if (e != EW_OK) {
        ew_graph_free(*out);
        *out = NULL;
    }
    return e;
}
