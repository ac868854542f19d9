/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic study results with data for every kind of figure. */
#ifndef EW_RESULTS_CASE_H
#define EW_RESULTS_CASE_H

#include "report/run_data.h"

/* Hostile text, which must never be interpreted as markup or script, or end a string. */
#define EW_HOSTILE "</script><img src=x onerror=\"hostile=1\">'\"&\\|`\n<b>"

/* Runs of all studies, two machines, every quality, published figures; deterministic. */
ew_err ew_case_results(struct ew_results *r);

/* A workers sweep with hostile text in all text fields. */
ew_err ew_case_hostile(struct ew_results *r);

#endif
