/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a command: wall time, CPU time, memory, storage, power, energy, throttling. */
#ifndef EW_MEASURE_COMMAND_COST_H
#define EW_MEASURE_COMMAND_COST_H

#include <sys/resource.h>

#include "device/energy.h"
#include "device/frame_log.h"
#include "device/sampler.h"

struct ew_command_run {
    struct ew_board *board;
    int64_t interval_ns;
    double baseline_s;       /* idle measurement before the command; 0: none */
    const char *const *argv; /* NULL-terminated */
    struct ew_frame_log *log;
};

/* Results after the command has ended. */
struct ew_command_cost {
    int status; /* from waitpid */
    struct rusage use;
    long own_kb; /* peak of this process: the kernel counts it for the command until its exec */
    double wall_s;
    double read_bytes, write_bytes; /* -1: not reported by the kernel */
    struct ew_energy energy;
    double baseline_w; /* -1: not measured */
    struct ew_sampler_stats sampler;
    int64_t frames, throttled;
    bool throttle_known;
    double hottest_c; /* -1000: no temperature sensor */
    const char *hottest;
};

/* Runs the command while sampling the sensors.  Its exit status is in out->status; fails if it
 * cannot be started or sampled. */
ew_err ew_command_cost(const struct ew_command_run *r, struct ew_command_cost *out);

#endif
