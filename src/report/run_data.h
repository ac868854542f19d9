/* SPDX-License-Identifier: Apache-2.0 */
/* What a report is made of: runs with all their rows, in memory.  Where they come from is left to
 * report/store/load.h; drawing them to report/figure.h.
 *
 * A run is asked for a property by name and answers as text: "workers" is an option of its job,
 * "network" a field of the job, "governor" one of the machine.  So a figure is described by names
 * alone. */
#ifndef EW_REPORT_RUN_DATA_H
#define EW_REPORT_RUN_DATA_H

#include "base/mem.h"
#include "record/record.h"

/* One run; rows and texts are borrowed, usually from the results' arena. */
struct ew_run_data {
    struct ew_run_row run;
    struct ew_job_row job;
    struct ew_machine_row machine;
    const struct ew_epoch_row *epochs;
    const struct ew_sample_row *samples;
    const struct ew_metric_row *metrics;
    int n_epochs, n_samples, n_metrics;
    const char *side; /* of a comparison: which of the two; else NULL */
};

struct ew_results {
    struct ew_arena arena;
    struct ew_run_data *runs;
    int n_runs, cap_runs;
    struct ew_published_row *published; /* for comparison with our values */
    int n_published, cap_published;
    struct ew_study_row *studies; /* that the runs are of */
    int n_studies, cap_studies;
};

void ew_results_init(struct ew_results *r);
void ew_results_fini(struct ew_results *r);

/* A new run at the end, all absent.  It moves when another is added. */
ew_err ew_results_add(struct ew_results *r, struct ew_run_data **out);
ew_err ew_results_publish(struct ew_results *r, const struct ew_published_row *p);
ew_err ew_results_add_study(struct ew_results *r, const struct ew_study_row *s);

/* The property `name` of the run: "side", then the fields of run, job and machine, then the
 * options of the job.  NULL: it has none.  Text lives in `a` or with the run. */
const char *ew_run_property(const struct ew_run_data *d, const char *name, struct ew_arena *a);

/* The profile of the board that it ran on, or that was simulated; NULL: not known. */
const char *ew_run_board(const struct ew_run_data *d, struct ew_arena *a);

/* The run is finished, so that its figures count. */
bool ew_run_counts(const struct ew_run_data *d);

/* Whether an option sets how a run is carried out or where it writes, not what is measured: runs
 * that differ in such options alone are repetitions. */
bool ew_option_is_incidental(const char *name);

/* Walks over a job's options, a JSON object of plain values; those that are null are passed over.
 * Text goes to the arena.  Anything else ends the walk. */
struct ew_option_walk {
    const char *at;
    struct ew_arena *arena;
    const char *name, *value;
};
struct ew_option_walk ew_option_begin(const char *options, struct ew_arena *a);
bool ew_option_next(struct ew_option_walk *w);

#endif
