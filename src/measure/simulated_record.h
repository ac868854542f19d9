/* SPDX-License-Identifier: Apache-2.0 */
/* Recording simulated metrics, each marked as such. */
#ifndef EW_MEASURE_SIMULATED_RECORD_H
#define EW_MEASURE_SIMULATED_RECORD_H

#include "advise/simulated_run.h"
#include "study/recording.h"

/* A run of a board's model as metrics. */
ew_err ew_simulated_record(struct ew_recording *rec, const struct ew_simulated_run *r);

/* A simulated figure; and that the run as a whole is one. */
ew_err ew_simulated_metric(struct ew_recording *rec, const char *name, double value,
                           const char *unit, enum ew_better better);
ew_err ew_simulated_mark(struct ew_recording *rec);

#endif
