/* SPDX-License-Identifier: Apache-2.0 */
/* Results as studies leave them, made up: every kind of figure has its data. */
#ifndef EW_RESULTS_CASE_H
#define EW_RESULTS_CASE_H

#include "report/run_data.h"

/* What a name in results must never become: markup, script, a way out of a string. */
#define EW_HOSTILE "</script><img src=x onerror=\"hostile=1\">'\"&\\|`\n<b>"

/* Runs of all studies, two machines, every quality, published figures; the same each time. */
ew_err ew_case_results(struct ew_results *r);

/* A workers sweep with hostile text wherever text goes. */
ew_err ew_case_hostile(struct ew_results *r);

#endif
