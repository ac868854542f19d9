/* SPDX-License-Identifier: Apache-2.0 */
/* The home store's side of a fleet: a job that a machine has taken is a run in the works, which its
 * own rows replace when they come. */
#ifndef EW_STUDY_FLEET_ROWS_H
#define EW_STUDY_FLEET_ROWS_H

#include "study/fleet_run.h"

/* Is the job done: on this machine, or with unit NULL on any of them? */
ew_err ew_fleet_job_done(struct ew_store *s, const struct ew_study *study,
                         const struct ew_study_job *j, const struct ew_machines *machines,
                         const char *unit, bool *done);

/* The machine has taken the job: *run is the row that says so. */
ew_err ew_fleet_row_begin(struct ew_store *s, const struct ew_study *study,
                          const struct ew_study_job *j, const struct ew_machine_row *m,
                          int64_t *run);

/* What the machine sent, a store of its own, goes into ours: the run in the works is taken away,
 * and the report says how the job ended.  Nothing but runs of this job on this machine is taken. */
ew_err ew_fleet_rows_home(struct ew_store *s, const struct ew_store_claim *claim,
                          const struct ew_frame *file, int64_t run, struct ew_fleet_report *out);

#endif
