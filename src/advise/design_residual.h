/* SPDX-License-Identifier: Apache-2.0 */
/* Posterior variance of the residuals of the laws, a Matern process (residual_gp.h) of typical size
 * over all candidates, during a design.  Without it a design would trust the laws and measure only
 * extreme modes. */
#ifndef EW_ADVISE_DESIGN_RESIDUAL_H
#define EW_ADVISE_DESIGN_RESIDUAL_H

#include "advise/design.h"
#include "base/mem.h"

#define EW_DESIGN_RESIDUAL_GRID  128 /* candidates over which variance is averaged */
#define EW_DESIGN_RESIDUAL_STEPS 256 /* measurements that count */

struct ew_design_residual {
    struct ew_arena *arena;
    struct ew_mode *logs; /* of the n candidates */
    int n;
    int grid[EW_DESIGN_RESIDUAL_GRID], n_grid;
    double *var; /* at each candidate */
    double *cov; /* of each candidate with the grid, n x n_grid */
    double *observed[EW_DESIGN_RESIDUAL_STEPS];
    int n_observed;
};

ew_err ew_design_residual_init(struct ew_arena *a, const struct ew_design *d,
                               struct ew_design_residual *out);

/* Mean variance over the grid, and its reduction by measuring candidate c. */
double ew_design_residual_variance(const struct ew_design_residual *r);
double ew_design_residual_gain(const struct ew_design_residual *r, int c);

/* Candidate c is measured. */
ew_err ew_design_residual_observe(struct ew_design_residual *r, int c);

#endif
