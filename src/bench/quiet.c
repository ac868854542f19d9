/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time of other programs during a measurement. */
#include "bench/quiet.h"

#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

#define SHORTEST_S 0.2 /* minimum interval, since the system counts in hundredths of a second */

/* User, nice, system and interrupt time of all CPUs; not stolen time, which belongs to other
 * virtual machines. */
static double machine_seconds(void)
{
    unsigned long long v[8];
    FILE *f = fopen("/proc/stat", "re");
    if (!f)
        return NAN;
    const int n = fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2],
                         &v[3], &v[4], &v[5], &v[6], &v[7]);
    fclose(f);
    const long ticks = sysconf(_SC_CLK_TCK);
    return n == 8 ? (double)(v[0] + v[1] + v[2] + v[5] + v[6]) / (double)(ticks > 0 ? ticks : 100)
                  : (double)NAN;
}

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + 1e-6 * (double)t->tv_usec;
}

struct ew_cpu_use ew_cpu_use_now(void)
{
    struct ew_cpu_use u = {.at_ns = ew_clock_ns(), .machine_s = machine_seconds()};
    for (int who = 0; who < 2; who++) {
        struct rusage r;
        if (getrusage(who ? RUSAGE_CHILDREN : RUSAGE_SELF, &r) == 0)
            u.own_s += seconds(&r.ru_utime) + seconds(&r.ru_stime);
    }
    return u;
}

double ew_cpu_use_others(const struct ew_cpu_use *from, const struct ew_cpu_use *to, int cpus)
{
    const double wall = (double)(to->at_ns - from->at_ns) * 1e-9;
    if (wall < SHORTEST_S || cpus < 1 || isnan(from->machine_s) || isnan(to->machine_s))
        return NAN;
    const double others = to->machine_s - from->machine_s - (to->own_s - from->own_s);
    return fmin(1, fmax(0, others / (wall * cpus)));
}
