/* SPDX-License-Identifier: Apache-2.0 */
/* From a trained float32 network to one that learns for integers (compress/fake_quant.h). */
#ifndef EW_QUANT_QUANT_LEARN_H
#define EW_QUANT_QUANT_LEARN_H

#include "quant/quant_run.h"

/* Batch norms are folded and ranges measured over the calibration images as ew_quant_run does, with
 * the remedies that it would take; then every layer gets fake quantisers.  Of the options scheme,
 * method, percentile, is_signed, equalize, correct_bias and threads count.  The result has weights
 * of its own. */
ew_err ew_quant_learn(const struct ew_quant_job *job, struct ew_graph **out);

struct ew_quant_learn_how {
    const struct ew_graph *net;
    const struct ew_dataset *data;
    struct ew_preprocess prep;
    int64_t images; /* of the training split, spread evenly, that ranges are measured on */
    bool pow2; /* scales are powers of two; with the remedies, which are worth their time there */
    int threads;
    FILE *talk; /* NULL: silent */
};

/* The same over a data set. */
ew_err ew_quant_learn_data(const struct ew_quant_learn_how *how, struct ew_graph **out);

#endif
