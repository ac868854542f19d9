/* SPDX-License-Identifier: Apache-2.0 */
/* Writes synthetic results into a store. */
#ifndef EW_RESULTS_STORE_H
#define EW_RESULTS_STORE_H

#include "results_case.h"
#include "store/store.h"

/* Runs with all their rows, and published figures, in one transaction. */
ew_err ew_case_put(struct ew_store *s, const struct ew_results *r);

#endif
