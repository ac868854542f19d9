/* SPDX-License-Identifier: Apache-2.0 */
/* Posterior variance of the residual process during a design. */
#include "advise/design_residual.h"

#include <math.h>

#include "advise/residual_gp.h"
#include "base/rng.h"

/* Between 0.02 and 0.1 errors from 50 modes of the boards of tests/synthetic_boards.c are alike. */
#define AMPLITUDE 0.03 /* standard deviation of ln */
#define LENGTH    1    /* in logarithms of clocks and cores */
#define NOISE     0.02 /* of a measurement */
#define SEED      7

ew_err ew_design_residual_init(struct ew_arena *a, const struct ew_design *d,
                               struct ew_design_residual *out)
{
    const int n = d->n, g = n < EW_DESIGN_RESIDUAL_GRID ? n : EW_DESIGN_RESIDUAL_GRID;
    *out = (struct ew_design_residual){.arena = a, .n = n, .n_grid = g};
    out->logs = ew_arena_array(a, (size_t)n, sizeof(*out->logs));
    out->var = ew_arena_array(a, (size_t)n, sizeof(*out->var));
    out->cov = ew_arena_array(a, (size_t)n * (size_t)g, sizeof(*out->cov));
    EW_CHECK(out->logs && out->var && out->cov, EW_ERR_MEMORY, "no memory for a design");
    for (int i = 0; i < g; i++)
        out->grid[i] = n == g ? i : (int)(ew_rng_u64(SEED, 3, (uint64_t)i) % (uint64_t)n);
    for (int c = 0; c < n; c++)
        out->logs[c] = ew_mode_logs(&d->candidates[c]);
    for (int c = 0; c < n; c++) {
        double *cov = out->cov + (int64_t)c * g;
        out->var[c] = AMPLITUDE * AMPLITUDE;
        for (int i = 0; i < g; i++)
            cov[i] =
                ew_residual_gp_kernel(AMPLITUDE, LENGTH, &out->logs[c], &out->logs[out->grid[i]]);
    }
    return EW_OK;
}

double ew_design_residual_variance(const struct ew_design_residual *r)
{
    double sum = 0;
    for (int i = 0; i < r->n_grid; i++)
        sum += r->var[r->grid[i]];
    return sum / r->n_grid;
}

double ew_design_residual_gain(const struct ew_design_residual *r, int c)
{
    const double *cov = r->cov + (int64_t)c * r->n_grid;
    double sum = 0;
    for (int i = 0; i < r->n_grid; i++)
        sum += cov[i] * cov[i];
    return sum / (r->var[c] + NOISE * NOISE) / r->n_grid;
}

/* One more column of the Cholesky factor of the candidates' covariance. */
ew_err ew_design_residual_observe(struct ew_design_residual *r, int c)
{
    if (r->n_observed == EW_DESIGN_RESIDUAL_STEPS)
        return EW_OK;
    const double root = sqrt(r->var[c] + NOISE * NOISE);
    double *u = ew_arena_array(r->arena, (size_t)r->n, sizeof(*u));
    EW_CHECK(u, EW_ERR_MEMORY, "no memory for a design");
    for (int i = 0; i < r->n; i++)
        u[i] = ew_residual_gp_kernel(AMPLITUDE, LENGTH, &r->logs[i], &r->logs[c]);
    for (int k = 0; k < r->n_observed; k++)
        for (int i = 0; i < r->n; i++)
            u[i] -= r->observed[k][i] * r->observed[k][c];
    for (int i = 0; i < r->n; i++)
        u[i] /= root;
    for (int i = 0; i < r->n; i++) {
        double *cov = r->cov + (int64_t)i * r->n_grid;
        r->var[i] -= u[i] * u[i];
        for (int g = 0; g < r->n_grid; g++)
            cov[g] -= u[i] * u[r->grid[g]];
    }
    r->observed[r->n_observed++] = u;
    return EW_OK;
}
