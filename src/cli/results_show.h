/* SPDX-License-Identifier: Apache-2.0 */
/* Runs as a table for the terminal, as CSV and as JSON; two runs side by side. */
#ifndef EW_CLI_RESULTS_SHOW_H
#define EW_CLI_RESULTS_SHOW_H

#include "store/store.h"

/* All columns that have a value somewhere, one line per run. */
ew_err ew_results_csv(struct ew_rows *rows);
ew_err ew_results_json(struct ew_rows *rows);

/* The columns named by `columns` ("id,network,median_ms"), or those that tell these runs apart.
 * `lenient`: names that are not there, and columns that are empty, are passed over. */
ew_err ew_results_table(struct ew_rows *rows, const char *columns, bool lenient);

/* What differs between two runs: settings, machine, figures. */
ew_err ew_results_diff(struct ew_store *s, int64_t a, int64_t b, bool json);

#endif
