/* SPDX-License-Identifier: Apache-2.0 */
/* Power during a continuous load, and the idle power before it. */
#ifndef EW_MEASURE_POWER_METER_H
#define EW_MEASURE_POWER_METER_H

#include "base/err.h"

struct ew_bench_power {
    const char *absent;    /* reason without a value; NULL: the other members are valid */
    const char *rails;     /* what the total covers; owned by the meter */
    double idle_w;         /* idle power before the load */
    double mean_w, peak_w; /* between begin and end */
    double images_per_s;   /* set by the caller */
};

struct ew_power_meter;

/* Opens the board and measures idle power.  Without a sensor *out is NULL and *absent the reason.
 * Release with close. */
ew_err ew_power_meter_open(const char *power_from, double idle_s, struct ew_power_meter **out,
                           const char **absent);
void ew_power_meter_close(struct ew_power_meter *m); /* NULL: no effect */

/* Begins an interval; call poll at least once a second until its end. */
void ew_power_meter_begin(struct ew_power_meter *m);
void ew_power_meter_poll(struct ew_power_meter *m);
ew_err ew_power_meter_end(struct ew_power_meter *m, struct ew_bench_power *out);

#endif
