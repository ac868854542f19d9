/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic boards for tests of predictions: clocks like those of real boards, and workloads whose
 * time and power follow several laws, only one of which is the predictor's. */
#ifndef EW_TESTS_MADE_BOARDS_H
#define EW_TESTS_MADE_BOARDS_H

#include "advise/law.h"

enum made_law {
    MADE_SAME,     /* the predictor's own laws with other parameters */
    MADE_ADDED,    /* no overlap: times add up */
    MADE_ROOFLINE, /* hard maximum of arithmetic, memory and loader */
    MADE_TRAIN,    /* the form of the simulated boards */
    MADE_AMDAHL,   /* serial and parallel loader work, contention for cores, fractional exponents */
    MADE_INFER,    /* no loader: launches overlap with the accelerator */
    MADE_LAWS
};

enum made_board { MADE_ORIN, MADE_ORIN_NANO, MADE_XAVIER, MADE_BOARDS };

/* One network on one board. */
struct made_workload {
    enum made_law law;
    enum made_board board;
    unsigned seed;
    double throttled; /* fraction of throttled runs */
};

/* Writes the board's modes to `out`, which has room for MADE_MODES; returns their number. */
#define MADE_MODES 29232
int made_modes(enum made_board b, struct ew_mode *out);

/* Time and power in mode i, with measurement noise and without. */
void made_measure(const struct made_workload *w, const struct ew_mode *m, int i, double *time,
                  double *power);
void made_truth(const struct made_workload *w, const struct ew_mode *m, double *time,
                double *power);

#endif
