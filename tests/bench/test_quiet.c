/* SPDX-License-Identifier: Apache-2.0 */
/* CPU share of other processes: ours is excluded, short intervals are inconclusive. */
#include "bench/quiet.h"

#include <math.h>

#include "bench/bench.h"
#include "ew_test.h"

static double others(double wall_s, double machine_s, double own_s, int cpus)
{
    const struct ew_cpu_use from = {.at_ns = 1000, .machine_s = 50, .own_s = 3};
    const struct ew_cpu_use to = {
        .at_ns = 1000 + (int64_t)(wall_s * 1e9), .machine_s = 50 + machine_s, .own_s = 3 + own_s};
    return ew_cpu_use_others(&from, &to, cpus);
}

static void shares(void)
{
    EW_EXPECT(fabs(others(1, 1, 1, 2) - 0) < 1e-9);
    EW_EXPECT(fabs(others(1, 1.5, 1, 2) - 0.25) < 1e-6);
    EW_EXPECT(fabs(others(1, 0.9, 1, 2) - 0) < 1e-9); /* counters with different resolutions */
    EW_EXPECT(fabs(others(1, 9, 0, 2) - 1) < 1e-9);
    EW_EXPECT(isnan(others(0.1, 1, 0, 2)));
    EW_EXPECT(isnan(others(1, NAN, 0, 2)));
}

/* Our own work is in both counters. */
static void now(void)
{
    const struct ew_cpu_use a = ew_cpu_use_now();
    volatile double x = 1;
    struct ew_cpu_use b = a;
    while (b.own_s - a.own_s < 0.05) {
        for (int i = 0; i < 100000; i++)
            x = x * 1.0000001 + 1e-9;
        b = ew_cpu_use_now();
    }
    EW_EXPECT(isnan(a.machine_s) || b.machine_s - a.machine_s >= 0.02);
    EW_EXPECT(b.at_ns > a.at_ns);
}

/* Any memory is faster than a disk and slower than a cache line per cycle. */
static void bandwidth(void)
{
    double bytes_s = 0;
    EW_EXPECT_OK(ew_bench_bandwidth(1, &bytes_s));
    EW_EXPECT(bytes_s > 1e7 && bytes_s < 1e13);
}

EW_TEST_MAIN(EW_TEST(shares), EW_TEST(now), EW_TEST(bandwidth))
