/* SPDX-License-Identifier: Apache-2.0 */
/* `predict --network` and `predict --check` on stores of runs. */
#ifndef EW_CLI_PREDICT_WORK_H
#define EW_CLI_PREDICT_WORK_H

#include "cli/cmd.h"
#include "measure/work_source.h"

struct ew_work_opts {
    const char *stores; /* comma-separated; NULL: predict by the board's model */
    const char *board;  /* board to predict for; NULL: none */
    struct ew_work_query query;
};

ew_err ew_predict_work(const struct ew_work_opts *o, bool json);

/* Validates: fits to a third of the stores' runs and predicts the others, and leaves out each
 * network in turn.  `html`: a page of charts; NULL: none. */
ew_err ew_predict_work_check(const char *stores, const char *html, bool json);

#endif
