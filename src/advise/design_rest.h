/* SPDX-License-Identifier: Apache-2.0 */
/* Posterior variance of the residuals of the laws, a Matern process (rest.h) of typical size over
 * all candidates, during a design.  Without it a design would trust the laws and measure only
 * extreme modes. */
#ifndef EW_ADVISE_DESIGN_REST_H
#define EW_ADVISE_DESIGN_REST_H

#include "advise/design.h"
#include "base/mem.h"

#define EW_DESIGN_REST_GRID  128 /* candidates over which variance is averaged */
#define EW_DESIGN_REST_STEPS 256 /* measurements that count */

struct ew_design_rest {
    struct ew_arena *arena;
    struct ew_mode *logs; /* of the n candidates */
    int n;
    int grid[EW_DESIGN_REST_GRID], n_grid;
    double *var; /* at each candidate */
    double *cov; /* of each candidate with the grid, n x n_grid */
    double *learnt[EW_DESIGN_REST_STEPS];
    int n_learnt;
};

ew_err ew_design_rest_init(struct ew_arena *a, const struct ew_design *d,
                           struct ew_design_rest *out);

/* Mean variance over the grid, and its reduction by measuring candidate c. */
double ew_design_rest_left(const struct ew_design_rest *r);
double ew_design_rest_gain(const struct ew_design_rest *r, int c);

/* Candidate c is measured. */
ew_err ew_design_rest_learn(struct ew_design_rest *r, int c);

#endif
