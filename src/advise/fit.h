/* SPDX-License-Identifier: Apache-2.0 */
/* Fitting a law to measurements: the most probable parameters under a prior and Student errors,
 * their covariance, a Gaussian process for the residuals, and leave-one-out residuals. */
#ifndef EW_ADVISE_FIT_H
#define EW_ADVISE_FIT_H

#include "advise/law.h"
#include "base/mem.h"

#define EW_FIT_ROWS   128 /* that the process for the residuals and the checks use */
#define EW_FIT_STARTS 6   /* the prior's mean and draws of the prior: there are several minima */

/* The law, linearised at its fit, plus its residuals (Matern 5/2 over the logarithms of cores and
 * clocks), as one Gaussian process conditioned on the measurements. */
struct ew_residual_gp {
    double amplitude; /* standard deviation of the residuals of ln; 0: none */
    double length;    /* in logarithms */
    double noise;     /* of measurements, as a factor of the law's */
    double run_noise; /* the same for a future run: root mean square over the posterior */
    int n;
    struct ew_mode *logs;                      /* of the measurements */
    double *cov_jac;                           /* S0 times the law's derivatives there; n x k */
    double *alpha;                             /* C^-1 r0, C = J S0 J' + K + Sigma */
    double *chol;                              /* of C */
    double cov[EW_LAW_PARAMS * EW_LAW_PARAMS]; /* S0, of the parameters before these rows */
    double shift[EW_LAW_PARAMS];               /* their mean before these rows, from theta */
};

struct ew_fit {
    ew_law *law;
    const void *ctx;
    struct ew_prior prior; /* moved to the units of the measurements */
    double theta[EW_LAW_PARAMS];
    struct ew_residual_gp residual;
    int n;           /* measurements */
    double *z;       /* leave-one-out residuals in standard deviations; n */
    double *z_usual; /* the same with the usual noise for every measurement; n */
    double *loo_ln;  /* leave-one-out residuals in ln; n */
    double evidence; /* ln of the probability of the measurements under this prior */
};

struct ew_fit_data {
    const struct ew_mode *modes;
    const double *y; /* ln of the quantity */
    int n;
    bool own_units; /* the prior's amounts are another board's: shift them to the median */
    int starts;     /* of the descent; 0: EW_FIT_STARTS */
};

/* The arena holds what the fit keeps.  EW_ERR_MEMORY, EW_ERR_ARG (the measurements are not
 * finite). */
ew_err ew_fit(struct ew_arena *a, ew_law *law, const void *ctx, const struct ew_prior *prior,
              const struct ew_fit_data *data, struct ew_fit *out);

/* Posterior of the parameters: the lower triangle of L, n x n, with theta + L u, u standard normal.
 * False where their covariance has no factor. */
bool ew_fit_spread(const struct ew_fit *f, double *l);

/* Mean of ln of the quantity at a mode where the law was evaluated, and the variance of that mean
 * (the noise of a measurement is not in it).  `scratch` has room for EW_FIT_ROWS. */
void ew_fit_at(const struct ew_fit *f, const struct ew_mode *m, const struct ew_law_point *p,
               double *scratch, double *mean, double *var);

#endif
