/* SPDX-License-Identifier: Apache-2.0 */
/* Time of a plan's run as a function of the work of its steps. */
#include "advise/work_law.h"

#include <math.h>

#define STEP 1e-5 /* of numeric derivatives */

/* Wide: a core at 1 to 6 GHz, caches and memory of 10 to 80 GB/s, a kernel that begins in a quarter
 * of a microsecond, threads that meet in one. */
const double ew_work_mean[EW_WORK_PARAMS] = {-1.2, -3.3, -16.1, -15, -13.5, -3.3, 0.9, 0.7};
const double ew_work_sd[EW_WORK_PARAMS] = {0.8, 1, 1, 1, 0.8, 0.7, 0.12, 0.3};

static double seconds(const double *t, const struct ew_work_load *l, double threads)
{
    const double cycle = 1e-9 * exp(t[EW_WORK_CYCLE]), byte = 1e-9 * exp(t[EW_WORK_BYTE]);
    const double other = cycle * exp(t[EW_WORK_OTHER]), sync = exp(t[EW_WORK_SYNC]);
    const double by_cycle = pow(threads, -t[EW_WORK_CYCLE_POW]);
    const double by_byte = pow(threads, -t[EW_WORK_BYTE_POW]);
    double sum = exp(t[EW_WORK_CALL]) + l->n * exp(t[EW_WORK_START]);
    for (int i = 0; i < l->n; i++) {
        const struct ew_work_step *s = &l->steps[i];
        const double w = s->cycles > 0 ? cycle * s->cycles : other * s->flops;
        const double m = byte * s->bytes;
        sum += threads > 1 ? fmin(w + m, w * by_cycle + m * by_byte + sync) : w + m;
    }
    return sum;
}

double ew_work_law(const double theta[EW_WORK_PARAMS], const struct ew_work_load *l, double threads,
                   double *jac)
{
    const double t = seconds(theta, l, threads);
    for (int j = 0; jac && j < EW_WORK_PARAMS; j++) {
        double moved[EW_WORK_PARAMS];
        for (int k = 0; k < EW_WORK_PARAMS; k++)
            moved[k] = theta[k] + (k == j ? STEP : 0);
        jac[j] = (seconds(moved, l, threads) / t - 1) / STEP;
    }
    return log(t);
}
