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

#endif
