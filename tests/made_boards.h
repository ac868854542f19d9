/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up boards for tests of predictions: clocks like those of real boards, and workloads whose
 * time and power follow several different laws, none of them known to the predictor but one. */
#ifndef EW_TESTS_MADE_BOARDS_H
#define EW_TESTS_MADE_BOARDS_H

#include "advise/law.h"

enum made_law {
    MADE_SAME,     /* the predictor's own laws, other parameters */
    MADE_ADDED,    /* nothing overlaps: times add up */
    MADE_ROOFLINE, /* hard maxima of arithmetic, memory and loader */
    MADE_TRAIN,    /* the simulated boards' form */
    MADE_AMDAHL,   /* serial and parallel work of the loader, contention of cores, odd exponents */
    MADE_INFER,    /* no loader: launches hide behind the accelerator */
    MADE_LAWS
};

enum made_board { MADE_ORIN, MADE_ORIN_NANO, MADE_XAVIER, MADE_BOARDS };

/* One network on one board. */
struct made_workload {
    enum made_law law;
    enum made_board board;
    unsigned seed;
    double throttled; /* share of runs that were */
};

/* The board's modes into `out`, which has room for MADE_MODES; returns how many. */
#define MADE_MODES 29232
int made_modes(enum made_board b, struct ew_mode *out);

/* Time and power at mode i: of a measurement, and without noise. */
void made_measure(const struct made_workload *w, const struct ew_mode *m, int i, double *time,
                  double *power);
void made_truth(const struct made_workload *w, const struct ew_mode *m, double *time,
                double *power);

#endif
