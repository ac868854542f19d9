/* SPDX-License-Identifier: Apache-2.0 */
/* What the laws leave over, as far as a design has measured it: a Matern process (rest.h) of the
 * usual size over all candidates.  Without it a design trusts the laws wholly and measures where
 * their parameters show, never in between. */
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

/* Mean variance over the grid, and how much of it measuring candidate c takes. */
double ew_design_rest_left(const struct ew_design_rest *r);
double ew_design_rest_gain(const struct ew_design_rest *r, int c);

/* Candidate c is measured. */
ew_err ew_design_rest_learn(struct ew_design_rest *r, int c);

#endif
