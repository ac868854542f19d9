/* SPDX-License-Identifier: Apache-2.0 */
/* The time of what was never run here, from what was. */
#include "advise/work_fit.h"

#include <math.h>

#define KAPPA 1.8 /* 95 % of the left-out in tests/advise/test_work.c */

#define GROUPED 3 /* beside once */

struct ew_mode ew_work_point_of(const struct ew_sim_load *l, double threads)
{
    return ew_work_point(threads, l->flops + GROUPED * l->grouped_flops, l->bytes, l->n);
}

ew_err ew_work_fit(struct ew_arena *a, const struct ew_mode *points, const double *time, int n,
                   struct ew_work_predictor **out)
{
    EW_CHECK(n >= EW_WORK_MIN, EW_ERR_ARG, "%d measurement%s: a prediction needs at least %d", n,
             n == 1 ? "" : "s", EW_WORK_MIN);
    struct ew_work_predictor *p = ew_arena_alloc(a, sizeof(*p));
    double *y = ew_arena_array(a, (size_t)n, sizeof(*y));
    EW_CHECK(p && y, EW_ERR_MEMORY, "no memory for %d measurements", n);
    for (int i = 0; i < n; i++) {
        EW_CHECK(time[i] > 0 && isfinite(time[i]), EW_ERR_ARG,
                 "measurement %d: its time is not a positive number", i + 1);
        y[i] = log(time[i]);
    }
    const struct ew_fit_data data = {.modes = points, .y = y, .n = n, .own_units = true};
    EW_TRY(ew_fit(a, ew_work_law, NULL, &ew_work_prior, &data, &p->fit));
    p->kappa = KAPPA;
    *out = p;
    return EW_OK;
}

void ew_work_predict(const struct ew_work_predictor *p, const struct ew_mode *points, int n,
                     struct ew_guess *out)
{
    for (int i = 0; i < n; i++) {
        struct ew_law_point at;
        double scratch[EW_FIT_ROWS], mean, var;
        ew_work_law(NULL, p->fit.theta, &points[i], 1, &at);
        ew_fit_at(&p->fit, &points[i], &at, scratch, &mean, &var);
        const double by = p->kappa / 1.645 * p->fit.scale;
        out[i] = ew_guess_of(mean, by * sqrt(var + at.sigma * at.sigma), by * sqrt(var));
    }
}
