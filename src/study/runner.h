/* SPDX-License-Identifier: Apache-2.0 */
/* Running a study: one job after the other, each a process of its own, all that happens in the
 * store.
 *
 *   EW_TRY(ew_runner_open(&study, &opts, &r));
 *   do {
 *       ... show ew_runner_next(r) ...
 *       e = ew_runner_step(r, &report);
 *       ... show the report ...
 *   } while (e == EW_OK && report.event != EW_RUNNER_END);
 *   ew_runner_close(r);
 *
 * A job that is done already is passed over; one that fails is recorded with its reason and the
 * study goes on.  Killed at any moment it goes on at the next start with the job that it was at. */
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
    bool outside;         /* `keep` and `setup` may leave the present folder */
    int64_t repeat_noisy; /* how often a noisy run is made again */
    bool check_data;      /* a job whose data set is not here is skipped */
    double look_s;        /* the guard's look before each run */
    struct ew_guard_limits limits;
    int64_t least_disk_bytes; /* less free: the study stops */
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
    int64_t passed; /* not needed any more */
    double left_s;  /* guess; nan: none */
};

struct ew_runner;

ew_err ew_runner_open(const struct ew_study *study, const struct ew_runner_opts *o,
                      struct ew_runner **out);
void ew_runner_close(struct ew_runner *r); /* NULL is fine */

/* The job that step will look at, and what it should take; NULL at the end. */
const struct ew_study_job *ew_runner_next(const struct ew_runner *r, struct ew_estimate *out);

/* Fails where the store or the disk does; a job's failure is a report. */
ew_err ew_runner_step(struct ew_runner *r, struct ew_runner_report *out);

/* Passes over the next job for good: it need not be done. */
void ew_runner_pass(struct ew_runner *r);

struct ew_runner_counts ew_runner_counts(const struct ew_runner *r);
struct ew_store *ew_runner_store(struct ew_runner *r);
const struct ew_machine_row *ew_runner_machine(const struct ew_runner *r);

/* Who makes what a study needs, and which store {db} in its words stands for. */
struct ew_runner_maker {
    const char *program, *db;
};

/* Makes the next of the things that the study needs and that are not there: *what is its path, NULL
 * where nothing is left to do.  `by` NULL: only says what would be made. */
ew_err ew_runner_setup(const struct ew_study *study, const struct ew_runner_maker *by,
                       struct ew_arena *a, const char **what);

/* Whether this board can be set as the job asks; where not, the thread's message says why.  `words`
 * gets the command line that sets it ("power", "set", ..., "--"), up to `max` words; *n is 0 where
 * there is nothing to set. */
ew_err ew_runner_power(struct ew_board *b, const struct ew_study_power *p, const char **words,
                       int max, int *n);

#endif
