/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of results as CO2e, for a grid of known carbon intensity. */
#ifndef EW_REPORT_CARBON_H
#define EW_REPORT_CARBON_H

#include "report/run_data.h"

/* Grams of CO2 equivalent of so much energy. */
static inline double ew_carbon_g(double joules, double g_per_kwh)
{
    return joules / 3.6e6 * g_per_kwh;
}

/* One line for each network: number of runs with an energy, their total energy and its CO2e;
 * simulated runs have lines of their own. "": no run has an energy.  Text lives in the arena. */
ew_err ew_carbon_text(struct ew_arena *a, const struct ew_results *r, double g_per_kwh,
                      const char **out);

#endif
