/* SPDX-License-Identifier: Apache-2.0 */
/* The machine as a record, and its state just before a run. */
#ifndef EW_STUDY_MACHINE_H
#define EW_STUDY_MACHINE_H

#include "base/mem.h"
#include "device/board.h"
#include "record/record.h"

/* Describes an open board; text goes to the arena.  `unit` is the environment variable EW_UNIT, or
 * a hash of the system's machine id, which cannot be turned back. */
ew_err ew_machine_read(struct ew_board *b, struct ew_arena *a, struct ew_machine_row *out);

/* Readings before a run.  nan and EW_INT_ABSENT: not available here. */
struct ew_machine_state {
    double busy;      /* share of the machine's CPU time that was in use, 0 to 1 */
    double temp_c;    /* hottest sensor */
    double cpu_mhz;   /* mean of the cores */
    double throttle;  /* sum of states and counters of throttling */
    double mhz_share; /* highest CPU clock allowed now / the highest that there is */
    int64_t free_memory_bytes, free_disk_bytes;
};

/* Limits above which a run is noisy. */
struct ew_noise_limits {
    double busy;   /* others' share of the CPU */
    double temp_c; /* 0: no limit */
};

/* Observes the machine for `seconds`; `folder` is where results go. */
ew_err ew_machine_state_read(struct ew_board *b, const char *folder, double seconds,
                             struct ew_machine_state *out);

/* Why a run that begins now would be noisy; false: it would not. */
#define EW_NOISE_CHARS 200
bool ew_machine_state_noise(const struct ew_machine_state *g, const struct ew_noise_limits *l,
                            char out[EW_NOISE_CHARS]);

/* CPU seconds that the whole machine has used since boot; nan: unknown. */
double ew_machine_cpu_s(const struct ew_board *b);

#endif
