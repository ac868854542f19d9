/* SPDX-License-Identifier: Apache-2.0 */
/* The machines that a study or another command is sent to: a file with a section for each.
 *
 *   [pi4]
 *   launcher = ssh pi4              words, never a shell's line; none: a process here
 *   program  = edgewise/edgewise    there
 *   folder   = edgewise             there: where jobs run and find their data
 *
 * docs/fleet.md has all keys. */
#ifndef EW_STUDY_MACHINES_H
#define EW_STUDY_MACHINES_H

#include "base/mem.h"

#define EW_MACHINES_MAX 64

enum ew_when_lost { EW_LOST_OTHER, EW_LOST_WAIT };

struct ew_fleet_machine {
    const char *name;      /* the section: the machine's unit in the results */
    const char **launcher; /* words, NULL-terminated; the first is NULL: a process here */
    int n_launcher;
    const char *program, *folder;
    const char *device; /* the identity that it must have; NULL: any */
    int when_lost;      /* enum ew_when_lost: who gets the job that it had */
    int64_t least_disk_bytes, retries;
    double timeout_s;     /* silence after which it is lost */
    double job_timeout_s; /* that one job may take; 0: any time */
};

struct ew_machines {
    struct ew_fleet_machine *list;
    int n;
};

/* Reads the file.  Text goes to the arena; messages name file and line.  Characters with a meaning
 * to shells are refused, since ssh passes words to one. */
ew_err ew_machines_read(struct ew_arena *a, const char *path, struct ew_machines *out);

/* The command line that starts the program's agent there: launcher, program and `agent`, as words
 * from the arena.  `self` is the program for machines without a launcher. */
ew_err ew_machine_command(const struct ew_fleet_machine *m, const char *self, struct ew_arena *a,
                          const char ***out);

#endif
