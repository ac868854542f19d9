/* SPDX-License-Identifier: Apache-2.0 */
/* What the energy of results means in greenhouse gas, for a grid of known intensity. */
#ifndef EW_REPORT_CARBON_H
#define EW_REPORT_CARBON_H

#include "report/run_data.h"

/* Grams of CO2 equivalent of so much energy. */
static inline double ew_carbon_g(double joules, double g_per_kwh)
{
    return joules / 3.6e6 * g_per_kwh;
}

/* A line for each network: its runs that have an energy, its sum, and its carbon; simulated runs
 * have lines of their own.  "": no run has an energy.  Text lives in the arena. */
ew_err ew_carbon_text(struct ew_arena *a, const struct ew_results *r, double g_per_kwh,
                      const char **out);

#endif
