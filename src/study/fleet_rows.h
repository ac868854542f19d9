/* SPDX-License-Identifier: Apache-2.0 */
/* The study's database for a fleet: a job that a machine has taken is a run with status running,
 * until the machine's own rows replace it. */
#ifndef EW_STUDY_FLEET_ROWS_H
#define EW_STUDY_FLEET_ROWS_H

#include "study/fleet_run.h"

/* Whether the job is done on this machine, or with unit NULL on any. */
ew_err ew_fleet_job_done(struct ew_store *s, const struct ew_study *study,
                         const struct ew_study_job *j, const struct ew_machines *machines,
                         const char *unit, bool *done);

/* The machine has taken the job: adds its row, *run. */
ew_err ew_fleet_row_begin(struct ew_store *s, const struct ew_study *study,
                          const struct ew_study_job *j, const struct ew_machine_row *m,
                          int64_t *run);

/* Copies the runs from the database that the machine sent: they replace the running row, and the
 * report says how the job ended.  Only runs of this job on this machine are accepted. */
ew_err ew_fleet_rows_home(struct ew_store *s, const struct ew_store_claim *claim,
                          const struct ew_frame *file, int64_t run, struct ew_fleet_report *out);

#endif
