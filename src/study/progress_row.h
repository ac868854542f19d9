/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a study in the database: its progress, and the process that runs it. */
#ifndef EW_STUDY_PROGRESS_ROW_H
#define EW_STUDY_PROGRESS_ROW_H

#include "study/runner.h"

/* Writes the row; `now` is the label of the job that runs, NULL: none. */
ew_err ew_study_put_progress(struct ew_store *s, const struct ew_study *study,
                             const struct ew_runner_counts *c, const char *started,
                             const char *now);

/* Fails if another process runs this study on this database: the two would disturb each other's
 * measurements and do every job twice.  Call it in the transaction that writes our row. */
ew_err ew_study_check_holder(struct ew_store *s, const struct ew_study *study);

#endif
