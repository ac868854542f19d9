/* SPDX-License-Identifier: Apache-2.0 */
/* Residuals of a law as a Gaussian process whose hyperparameters follow from the evidence. */
#ifndef EW_ADVISE_RESIDUAL_GP_H
#define EW_ADVISE_RESIDUAL_GP_H

#include "advise/fit.h"

/* Logarithms of cores and clocks. */
struct ew_mode ew_mode_logs(const struct ew_mode *m);

/* Covariance of the process between two modes, given by their logarithms. */
double ew_residual_gp_kernel(double amplitude, double length, const struct ew_mode *a,
                             const struct ew_mode *b);

/* Sets rest, z, z_usual and evidence of a fitted law; `points` are the law at the measurements. */
ew_err ew_residual_gp_fit(struct ew_arena *a, struct ew_fit *f, const struct ew_fit_data *data,
                          struct ew_law_point *points);

/* Mean and variance of ln of the quantity at a mode where the law is `q`. */
void ew_residual_gp_at(const struct ew_fit *f, const struct ew_mode *m,
                       const struct ew_law_point *q, double *scratch, double *mean, double *var);

#endif
