/* SPDX-License-Identifier: Apache-2.0 */
/* Preparing a trained float32 network for quantisation-aware training (compress/fake_quant.h). */
#ifndef EW_QUANT_QUANT_LEARN_H
#define EW_QUANT_QUANT_LEARN_H

#include "quant/quant_run.h"

/* Folds batch norms, measures ranges over the calibration images and applies the best remedies as
 * ew_quant_run does; then adds fake quantisers to every layer.  Uses the options scheme, method,
 * percentile, is_signed, equalize, correct_bias and threads.  The result owns its weights. */
ew_err ew_quant_learn(const struct ew_quant_job *job, struct ew_graph **out);

struct ew_quant_learn_opts {
    const struct ew_graph *net;
    const struct ew_dataset *data;
    struct ew_preprocess prep;
    int64_t images; /* calibration images, evenly spaced over the training split */
    bool pow2;      /* power-of-two scales, with remedies, which matter most there */
    int threads;
    FILE *talk; /* NULL: silent */
};

/* The same with calibration images of a data set. */
ew_err ew_quant_learn_data(const struct ew_quant_learn_opts *how, struct ew_graph **out);

#endif
