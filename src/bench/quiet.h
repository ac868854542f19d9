/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a measurement was disturbed: CPU time of other programs meanwhile, runs that stand out.
 */
#ifndef EW_BENCH_QUIET_H
#define EW_BENCH_QUIET_H

#include <stdint.h>

/* CPU seconds at a moment, of the machine and of this process with its children. */
struct ew_cpu_use {
    int64_t at_ns;
    double machine_s, own_s; /* machine_s nan: the system does not say */
};

struct ew_cpu_use ew_cpu_use_now(void);

/* The share of the machine's CPU time between two moments that others used, 0 to 1; nan where that
 * is not known or too short to tell (the system counts in hundredths of a second). */
double ew_cpu_use_others(const struct ew_cpu_use *from, const struct ew_cpu_use *to, int cpus);

#define EW_BUSY_SHARE 0.1 /* from here on others' share is worth a warning */

#endif
