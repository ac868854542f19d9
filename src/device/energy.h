/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of an interval from samples of power, of a counter, or both.
 *
 * Samples are joined by straight lines; the ends of the interval are interpolated; where there is
 * no sample beyond an end, the nearest one is held.  A sample that is absent is a gap, not a 0.
 *
 * The bound on the error is the sum of
 *   resolution / 2 x duration                for steps of the sensor,
 *   |p1 - p0| / 2 x dt                       for each pair of samples: power in between lies
 * between, (peak - min) / 2 x dt instead            where dt is over 2.5 times the interval asked
 * for, (peak - min) x time held at the ends. Bursts shorter than the sampling interval can hide
 * from it; counters see them. */
#ifndef EW_DEVICE_ENERGY_H
#define EW_DEVICE_ENERGY_H

#include "base/err.h"
#include "device/sample.h"

/* The running sums.  Plain data, may be copied. */
struct ew_energy_sum {
    int64_t begin_ns, end_ns; /* end_ns INT64_MAX: still open */
    int64_t interval_ns;      /* asked for */
    double resolution_w;      /* 0: not known */
    int64_t last_ns;          /* of the last present sample; INT64_MIN: none yet */
    double last_w, first_w;   /* first_w: of the first sample */
    int64_t first_ns;
    double joules, swing_j; /* swing: sum of |dp| / 2 x dt over ordinary pairs */
    double gap_s;           /* time in pairs that are too far apart */
    double min_w, peak_w, longest_gap_s;
    int64_t samples, absent;  /* inside the interval */
    enum ew_absent why;       /* of the last absent one */
    struct {                  /* the counter */
        int64_t ns, first_ns; /* INT64_MIN: none yet */
        double last_j, begin_j, end_j;
        double slack_j; /* uncertainty of the ends */
        bool begun, ended, broken;
    } counter;
};

struct ew_energy {
    enum ew_absent absent; /* EW_ABSENT_NOT: the rest holds */
    bool counted;          /* joules come from a counter, not from integration */
    double seconds, joules, error_j;
    double mean_w, min_w, peak_w; /* min and peak: of samples, 0 where there are none */
    int64_t samples, missing;     /* samples in the interval; those that were absent */
    double longest_gap_s, held_s;
    double resolution_w; /* 0: not known, and then not in the bound */
    double integrated_j; /* from samples, beside a counter; -1: none */
    bool disagree;       /* counter and integration differ by more than both bounds and 2 % */
};

/* Begins at begin_ns; earlier samples may be added, for interpolation. */
void ew_energy_begin(struct ew_energy_sum *e, int64_t begin_ns, int64_t interval_ns,
                     double resolution_w);

/* The next sample, in order of time: power in W, and a counter in J where there is one. */
void ew_energy_add(struct ew_energy_sum *e, int64_t t_ns, struct ew_sample_value power,
                   struct ew_sample_value counter);

/* The interval ends here.  Samples up to the first one after it may still be added. */
void ew_energy_stop(struct ew_energy_sum *e, int64_t end_ns);

/* The result; ew_energy_stop must have been called. */
struct ew_energy ew_energy_result(const struct ew_energy_sum *e);

#endif
