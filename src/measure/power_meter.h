/* SPDX-License-Identifier: Apache-2.0 */
/* Power during a continuous load, and the idle power before it. */
#ifndef EW_MEASURE_POWER_METER_H
#define EW_MEASURE_POWER_METER_H

#include "base/err.h"

struct ew_bench_power {
    const char *absent;    /* why there is none; NULL: the rest holds */
    const char *rails;     /* what the total is of; lives as long as the meter */
    double idle_w;         /* the machine at rest, before */
    double mean_w, peak_w; /* between begin and end */
    double images_per_s;   /* meanwhile; the caller's to set */
};

struct ew_power_meter;

/* Opens the board and measures the machine at rest.  Where there is no sensor *out is NULL and
 * *absent says why.  Release with close. */
ew_err ew_power_meter_open(const char *power_from, double idle_s, struct ew_power_meter **out,
                           const char **absent);
void ew_power_meter_close(struct ew_power_meter *m); /* NULL is fine */

/* An interval; poll at least every second meanwhile. */
void ew_power_meter_begin(struct ew_power_meter *m);
void ew_power_meter_poll(struct ew_power_meter *m);
ew_err ew_power_meter_end(struct ew_power_meter *m, struct ew_bench_power *out);

#endif
