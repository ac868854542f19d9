/* SPDX-License-Identifier: Apache-2.0 */
/* Results from the store into memory. */
#ifndef EW_REPORT_STORE_LOAD_H
#define EW_REPORT_STORE_LOAD_H

#include "report/run_data.h"
#include "store/store.h"

/* Adds all runs of the store (of one study, where it is given) with their epochs and metrics, the
 * samples of the longest run of each network, and published figures.  `side` marks them, NULL: not.
 */
ew_err ew_results_load(struct ew_store *s, const char *study, const char *side,
                       struct ew_results *r);

#endif
