/* SPDX-License-Identifier: Apache-2.0 */
/* What a command costs: wall time, CPU time, memory, disk, power, energy, throttling. */
#ifndef EW_MEASURE_COMMAND_COST_H
#define EW_MEASURE_COMMAND_COST_H

#include <sys/resource.h>

#include "device/energy.h"
#include "device/frame_log.h"
#include "device/sampler.h"

struct ew_command_run {
    struct ew_board *board;
    int64_t interval_ns;
    double baseline_s;       /* at rest, before the command; 0: none */
    const char *const *argv; /* NULL-terminated */
    struct ew_frame_log *log;
};

/* Everything that is known when the command is over. */
struct ew_command_cost {
    int status; /* of waitpid */
    struct rusage use;
    long own_kb; /* our own peak: the kernel counts it as the command's from before its exec */
    double wall_s;
    double read_bytes, write_bytes; /* -1: the kernel does not tell */
    struct ew_energy energy;
    double baseline_w; /* -1: not measured */
    struct ew_sampler_stats sampler;
    int64_t frames, throttled;
    bool throttle_known;
    double hottest_c; /* -1000: no thermometer */
    const char *hottest;
};

/* Runs the command with the board's sensors watched.  How the command ended is in out->status;
 * fails where it could not be started or watched. */
ew_err ew_command_cost(const struct ew_command_run *r, struct ew_command_cost *out);

#endif
