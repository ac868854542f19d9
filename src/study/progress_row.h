/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a study in the store: how far it is, and which process is at it. */
#ifndef EW_STUDY_PROGRESS_ROW_H
#define EW_STUDY_PROGRESS_ROW_H

#include "study/runner.h"

/* Writes the row; `now` is the label of the job that runs, NULL: none. */
ew_err ew_study_put_progress(struct ew_store *s, const struct ew_study *study,
                             const struct ew_runner_counts *c, const char *started,
                             const char *now);

/* One process at a time runs a study on a store: two would measure each other, and both do every
 * job.  Its row says which; call it inside the transaction that puts ours there. */
ew_err ew_study_check_holder(struct ew_store *s, const struct ew_study *study);

#endif
