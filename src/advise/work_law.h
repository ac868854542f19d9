/* SPDX-License-Identifier: Apache-2.0 */
/* Time of a plan's run as a function of the work of its steps and of threads:
 *
 *   t = call + sum over steps of start + min(w + m, w n^-u + m n^-v + sync)
 *
 * with w the time of a step's cycles and m that of its bytes on one thread, n threads: a step is
 * divided among threads only if that is faster.  Steps without an estimate of cycles count by their
 * arithmetic. */
#ifndef EW_ADVISE_WORK_LAW_H
#define EW_ADVISE_WORK_LAW_H

#include "advise/work_load.h"

/* Parameters; all but the powers are logarithms. */
enum ew_work_param {
    EW_WORK_CYCLE,     /* seconds of 1e9 estimated cycles */
    EW_WORK_BYTE,      /* of a GB */
    EW_WORK_START,     /* of a step */
    EW_WORK_CALL,      /* of a run, whatever it does */
    EW_WORK_SYNC,      /* of a step that several threads share */
    EW_WORK_OTHER,     /* cycles of an operation where there is no estimate */
    EW_WORK_CYCLE_POW, /* what threads bring: arithmetic */
    EW_WORK_BYTE_POW,  /* memory */
    EW_WORK_PARAMS
};

#define EW_WORK_AMOUNTS 5 /* the first ones: a faster machine moves all of them */

/* Prior: means and standard deviations. */
extern const double ew_work_mean[EW_WORK_PARAMS], ew_work_sd[EW_WORK_PARAMS];

/* ln of seconds, and its derivatives by the parameters (NULL: not wanted). */
double ew_work_law(const double theta[EW_WORK_PARAMS], const struct ew_work_load *l, double threads,
                   double *jac);

#endif
