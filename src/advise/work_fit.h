/* SPDX-License-Identifier: Apache-2.0 */
/* The time of networks, batches, widths and threads that were never run here, from some that were:
 * what their plans ask for is known without running them. */
#ifndef EW_ADVISE_WORK_FIT_H
#define EW_ADVISE_WORK_FIT_H

#include "advise/predictor.h"
#include "advise/sim_load.h"

#define EW_WORK_MIN 3 /* measurements, at least */

struct ew_work_predictor {
    struct ew_fit fit;
    double kappa; /* half of a 90 % interval, in standard deviations */
};

/* Where a plan stands on so many threads.  Grouped convolutions, whose channels do not fill
 * vectors, count four times. */
struct ew_mode ew_work_point_of(const struct ew_sim_load *l, double threads);

/* `points` are of ew_work_point_of; n of them.  All lives in the arena. */
ew_err ew_work_fit(struct ew_arena *a, const struct ew_mode *points, const double *time, int n,
                   struct ew_work_predictor **out);

void ew_work_predict(const struct ew_work_predictor *p, const struct ew_mode *points, int n,
                     struct ew_guess *out);

#endif
