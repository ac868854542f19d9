/* SPDX-License-Identifier: Apache-2.0 */
/* Accuracy of the timed plan on a data set. */
#include "measure/eval_run.h"
#include "measure/side.h"

ew_err ew_side_accuracy(struct ew_side *s, const char *data, double *out)
{
    const struct ew_classifier k = {.net = s->g, .prep = s->prep};
    const struct ew_eval_target t = {
        .name = s->name, .plan = s->p, .graph = s->g, .batch = s->batch};
    struct ew_image_set set;
    struct ew_eval_run r = {0};
    ew_err e = ew_image_set_open(data, &k, EW_FOR_EVALUATION, &set);
    if (e == EW_OK)
        e = ew_eval_run(&t, &set.loader, false, NULL, &r);
    if (e == EW_OK)
        *out = ew_confusion_scores(&r.confusion).accuracy;
    ew_eval_run_fini(&r);
    ew_image_set_close(&set);
    return e;
}
