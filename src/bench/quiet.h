/* SPDX-License-Identifier: Apache-2.0 */
/* Disturbance of a measurement: CPU time of other programs, and outliers. */
#ifndef EW_BENCH_QUIET_H
#define EW_BENCH_QUIET_H

#include <stdint.h>

/* CPU time so far, of the machine and of this process with its children. */
struct ew_cpu_use {
    int64_t at_ns;
    double machine_s, own_s; /* machine_s nan: unknown */
};

struct ew_cpu_use ew_cpu_use_now(void);

/* Share (0 to 1) of the machine's CPU time used by others between two moments; nan if unknown or
 * the interval is too short for the system's resolution of 10 ms. */
double ew_cpu_use_others(const struct ew_cpu_use *from, const struct ew_cpu_use *to, int cpus);

#define EW_BUSY_SHARE 0.1 /* share of others that deserves a warning */

#endif
