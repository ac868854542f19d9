/* SPDX-License-Identifier: Apache-2.0 */
/* Running a study: one job after the other, each in a process of its own, with all outcomes in the
 * database.
 *
 *   EW_TRY(ew_runner_open(&study, &opts, &r));
 *   do {
 *       ... show ew_runner_next(r) ...
 *       e = ew_runner_step(r, &report);
 *       ... show the report ...
 *   } while (e == EW_OK && report.event != EW_RUNNER_END);
 *   ew_runner_close(r);
 *
 * Finished jobs are skipped; a failed job is recorded with its reason and the study continues.  A
 * killed study continues at its next start with the job that was running. */
#ifndef EW_STUDY_RUNNER_H
#define EW_STUDY_RUNNER_H

#include "store/store.h"
#include "study/estimate.h"
#include "study/machine.h"
#include "study/study.h"

struct ew_runner_opts {
    const char *program; /* path of edgewise */
    const char *db;
    const char *scratch;  /* folder for what jobs write; each one's part is removed after it */
    bool outside;         /* `keep` and `setup` may leave the current folder */
    int64_t repeat_noisy; /* how often a noisy run is repeated */
    bool check_data;      /* a job whose data set is not here is skipped */
    double look_s;        /* duration of the check before each run */
    struct ew_noise_limits limits;
    int64_t least_disk_bytes; /* the study stops if less is free */
};

enum ew_runner_event {
    EW_RUNNER_KNOWN,   /* was done before */
    EW_RUNNER_DONE,    /* `noise` may say that it is not to be trusted */
    EW_RUNNER_NOISY,   /* done, but too noisy: it is run again */
    EW_RUNNER_FAILED,  /* `reason` says why */
    EW_RUNNER_SKIPPED, /* cannot be done here */
    EW_RUNNER_END
};

struct ew_runner_report {
    enum ew_runner_event event;
    const struct ew_study_job *job; /* NULL at the end */
    int64_t run;
    const char *reason, *noise; /* NULL: none; valid until the next step */
    double wall_s;
};

struct ew_runner_counts {
    int64_t total, at; /* jobs, and how many are done */
    int64_t known, done, failed, skipped;
    int64_t passed; /* no longer needed */
    double left_s;  /* guess; nan: none */
};

struct ew_runner;

ew_err ew_runner_open(const struct ew_study *study, const struct ew_runner_opts *o,
                      struct ew_runner **out);
void ew_runner_close(struct ew_runner *r); /* NULL is fine */

/* The next job of ew_runner_step, with its estimate; NULL at the end. */
const struct ew_study_job *ew_runner_next(const struct ew_runner *r, struct ew_estimate *out);

/* Fails if the database or the disk does; failures of jobs are reports. */
ew_err ew_runner_step(struct ew_runner *r, struct ew_runner_report *out);

/* Skips the next job: it is no longer needed. */
void ew_runner_pass(struct ew_runner *r);

struct ew_runner_counts ew_runner_counts(const struct ew_runner *r);
struct ew_store *ew_runner_store(struct ew_runner *r);
const struct ew_machine_row *ew_runner_machine(const struct ew_runner *r);

/* How the setup's commands run: the program, and the database that {db} stands for. */
struct ew_setup_opts {
    const char *program, *db;
};

/* Makes the next missing item of the study's setup: *what is its path, NULL if none is left.  `by`
 * NULL: only names it. */
ew_err ew_runner_setup(const struct ew_study *study, const struct ew_setup_opts *by,
                       struct ew_arena *a, const char **what);

/* Whether this board can be set as the job asks; if not, the error message says why. `words` gets
 * the command line that sets it ("power", "set", ..., "--"), up to `max` words; *n is 0 where there
 * is nothing to set. */
ew_err ew_runner_power(struct ew_board *b, const struct ew_study_power *p, const char **words,
                       int max, int *n);

#endif
