/* SPDX-License-Identifier: Apache-2.0 */
/* Runs as a table for the terminal, as CSV and as JSON; two runs side by side. */
#ifndef EW_CLI_RESULTS_SHOW_H
#define EW_CLI_RESULTS_SHOW_H

#include "store/store.h"

/* One line per run: the columns in `columns`, or all that have a value. */
ew_err ew_results_csv(struct ew_rows *rows, const char *columns);
ew_err ew_results_json(struct ew_rows *rows, const char *columns);

/* The columns in `columns` ("id,network,median_ms"), or those that differ between the runs.
 * `lenient`: ignores unknown and empty columns. */
ew_err ew_results_table(struct ew_rows *rows, const char *columns, bool lenient);

/* The differences between two runs: settings, machine, metrics. */
ew_err ew_results_diff(struct ew_store *s, int64_t a, int64_t b, bool json);

#endif
