/* SPDX-License-Identifier: Apache-2.0 */
/* Records simulated metrics, each marked as simulated. */
#ifndef EW_MEASURE_SIMULATED_RECORD_H
#define EW_MEASURE_SIMULATED_RECORD_H

#include "advise/simulated_run.h"
#include "study/recording.h"

/* Records the results of a simulated run. */
ew_err ew_simulated_record(struct ew_recording *rec, const struct ew_simulated_run *r);

/* Records a metric, and marks the run as simulated. */
ew_err ew_simulated_metric(struct ew_recording *rec, const char *name, double value,
                           const char *unit, enum ew_better better);
ew_err ew_simulated_mark(struct ew_recording *rec);

#endif
