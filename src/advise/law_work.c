/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a plan's run on a CPU or an accelerator, by what it asks for and by threads:
 *
 *   t = ((a F n^-u)^p + (b B n^-v)^p)^(1/p) + k K + c
 *
 * with F GFLOP, B GB, K thousands of kernels and n threads: a roofline, launches and a call. */
#include "advise/law.h"

#include <math.h>

/* Wide: a core does 10 to 100 GFLOP/s, its memory 5 to 20 GB/s, a kernel begins in microseconds. */
const struct ew_prior ew_work_prior = {
    .n = EW_WORK_PARAMS,
    .n_scale = 4,
    .mean = {-3.9, -2.3, -5.3, -10.5, 0.5, 0.9, 0.5},
    .sd = {0.8, 1.0, 1.2, 1.5, 0.5, 0.12, 0.3},
};

#define NOISE 0.03 /* of ln of a median */

struct ew_mode ew_work_point(double threads, double flops, double bytes, double kernels)
{
    return (struct ew_mode){threads, fmax(flops * 1e-9, 1e-9), fmax(bytes * 1e-9, 1e-9),
                            fmax(kernels * 1e-3, 1e-3)};
}

static double seconds(const double *t, const struct ew_mode *m)
{
    const double p = 1 + exp(t[EW_WORK_SHARP]);
    const double a = exp(t[EW_WORK_FLOPS]) * m->cpu * pow(m->cores, -t[EW_WORK_FLOPS_POW]);
    const double b = exp(t[EW_WORK_BYTES]) * m->gpu * pow(m->cores, -t[EW_WORK_BYTES_POW]);
    const double high = fmax(a, b), low = fmin(a, b);
    return high * pow(1 + pow(low / high, p), 1 / p) + exp(t[EW_WORK_KERNELS]) * m->mem +
           exp(t[EW_WORK_CALL]);
}

void ew_work_law(const void *ctx, const double *theta, const struct ew_mode *modes, int n,
                 struct ew_law_point *out)
{
    const double step = 1e-6;
    (void)ctx;
    for (int i = 0; i < n; i++) {
        const double t = seconds(theta, &modes[i]);
        out[i].y = log(t);
        out[i].sigma = NOISE;
        for (int j = 0; j < EW_WORK_PARAMS; j++) {
            double moved[EW_WORK_PARAMS];
            for (int k = 0; k < EW_WORK_PARAMS; k++)
                moved[k] = theta[k] + (k == j ? step : 0);
            out[i].jac[j] = (seconds(moved, &modes[i]) / t - 1) / step;
        }
    }
}
