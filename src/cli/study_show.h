/* SPDX-License-Identifier: Apache-2.0 */
/* Terminal output of a study: its jobs before it runs, progress while it runs, results after. */
#ifndef EW_CLI_STUDY_SHOW_H
#define EW_CLI_STUDY_SHOW_H

#include "study/runner.h"

/* The commands of this build that studies may use; returns their number. */
int ew_study_commands(struct ew_study_command *out, int max);

/* Lists the jobs with estimates; `s` may be NULL. */
ew_err ew_study_show_jobs(const struct ew_study *study, struct ew_store *s, bool json);

/* The settings in which the job differs from others of its section: " workers=2 batch=16". */
#define EW_JOB_CHARS 200
void ew_study_job_text(const struct ew_study *study, const struct ew_study_job *j,
                       char out[EW_JOB_CHARS]);

/* One line to standard error: "[3/20] lenet workers=2: 3.2 s, 1:20 left". */
void ew_study_show_report(const struct ew_study *study, const struct ew_runner_report *r,
                          const struct ew_runner_counts *c);

/* Prints the runs, published values beside ours, and differences from the publication. */
ew_err ew_study_show_results(const struct ew_study *study, struct ew_store *s,
                             const struct ew_machine_row *m);
ew_err ew_study_json_results(const struct ew_study *study, struct ew_store *s,
                             const struct ew_machine_row *m, const struct ew_runner_counts *c);

/* "2.5 s", "1:05", "2:10:00"; "?" where it is not known. */
#define EW_DURATION_CHARS 24
const char *ew_duration_text(double seconds, char out[EW_DURATION_CHARS]);

#endif
