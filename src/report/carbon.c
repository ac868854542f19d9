/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of results as greenhouse gas. */
#include "report/carbon.h"

#include <math.h>
#include <string.h>

/* Energy of a run in joules: the sum over its epochs, else the metric of the run; nan: not
 * measured. */
static double energy_of(const struct ew_run_data *d)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < d->n_epochs; i++)
        if (isfinite(d->epochs[i].energy_j)) {
            sum += d->epochs[i].energy_j;
            n++;
        }
    if (n)
        return sum;
    for (int i = 0; i < d->n_metrics; i++)
        if (d->metrics[i].name && strcmp(d->metrics[i].name, "energy_j") == 0)
            return d->metrics[i].value;
    return NAN;
}

static bool same_kind(const struct ew_run_data *a, const struct ew_run_data *b)
{
    const char *x = a->job.network ? a->job.network : "", *y = b->job.network ? b->job.network : "";
    return strcmp(x, y) == 0 &&
           (a->run.quality == EW_QUALITY_SIMULATED) == (b->run.quality == EW_QUALITY_SIMULATED);
}

static bool has_energy(const struct ew_run_data *d)
{
    return ew_run_counts(d) && isfinite(energy_of(d));
}

/* Whether an earlier run belongs to the same line of the output. */
static bool begun(const struct ew_results *r, int i)
{
    for (int k = 0; k < i; k++)
        if (has_energy(&r->runs[k]) && same_kind(&r->runs[k], &r->runs[i]))
            return true;
    return false;
}

ew_err ew_carbon_text(struct ew_arena *a, const struct ew_results *r, double g_per_kwh,
                      const char **out)
{
    *out = "";
    for (int i = 0; i < r->n_runs; i++) {
        const struct ew_run_data *d = &r->runs[i];
        double joules = 0;
        int n = 0;
        if (!has_energy(d) || begun(r, i))
            continue;
        for (int k = i; k < r->n_runs; k++)
            if (has_energy(&r->runs[k]) && same_kind(d, &r->runs[k])) {
                joules += energy_of(&r->runs[k]);
                n++;
            }
        *out = ew_arena_printf(a, "%s%s%s: %d run%s, %.4g J, %.3g g of CO2e%s", *out,
                               **out ? "\n" : "", d->job.network ? d->job.network : "others", n,
                               n == 1 ? "" : "s", joules, ew_carbon_g(joules, g_per_kwh),
                               d->run.quality == EW_QUALITY_SIMULATED ? " (simulated)" : "");
        EW_CHECK(*out, EW_ERR_MEMORY, "no memory for the report");
    }
    return EW_OK;
}
