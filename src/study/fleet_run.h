/* SPDX-License-Identifier: Apache-2.0 */
/* Running a study on many machines: each runs an agent behind its launcher (study/link.h), takes a
 * job when it is free, and sends the results to one database.
 *
 *   EW_TRY(ew_fleet_run_open(&study, &opts, &f));
 *   do {
 *       e = ew_fleet_run_step(f, &report);
 *       ... show the report ...
 *   } while (e == EW_OK && report.event != EW_FLEET_END);
 *   ew_fleet_run_close(f);
 *
 * If a machine is lost, its job is marked interrupted and given to another or kept for it, as the
 * file of machines says; connecting is retried at growing intervals.  A job that a machine cannot
 * do is offered to the others.  A killed study continues at its next start. */
#ifndef EW_STUDY_FLEET_RUN_H
#define EW_STUDY_FLEET_RUN_H

#include "study/link.h"
#include "study/runner.h"

struct ew_fleet_opts {
    const struct ew_machines *machines;
    const char *self, *db;
    const char *text;         /* of the study's file, as machines get it */
    const char *const *words; /* options of `study` there; NULL-terminated */
};

enum ew_fleet_event {
    EW_FLEET_UP,       /* a machine is there */
    EW_FLEET_LOST,     /* a machine cannot be reached or was lost; it is retried */
    EW_FLEET_GIVEN_UP, /* it is no longer retried */
    EW_FLEET_BEGUN,    /* a machine has taken a job */
    EW_FLEET_DONE,
    EW_FLEET_FAILED,
    EW_FLEET_SKIPPED, /* no machine can do it */
    EW_FLEET_END
};

struct ew_fleet_report {
    enum ew_fleet_event event;
    const char *machine;             /* NULL: no single machine */
    const struct ew_study_job *job;  /* NULL: none */
    const struct ew_machine_row *up; /* with UP, and the device's own identity */
    const char *device;
    double wall_s;
    char reason[EW_LINK_TEXT], noise[EW_NOISE_CHARS]; /* "": none */
};

struct ew_fleet_run;

ew_err ew_fleet_run_open(const struct ew_study *study, const struct ew_fleet_opts *o,
                         struct ew_fleet_run **out);
void ew_fleet_run_close(struct ew_fleet_run *f); /* NULL is fine */

/* Waits for the next event. */
ew_err ew_fleet_run_step(struct ew_fleet_run *f, struct ew_fleet_report *out);

struct ew_runner_counts ew_fleet_run_counts(const struct ew_fleet_run *f);
struct ew_store *ew_fleet_run_store(struct ew_fleet_run *f);

#endif
