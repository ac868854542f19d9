/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic boards for tests of predictions: clocks like those of real boards, and workloads whose
 * time and power follow several laws, only one of which is the predictor's. */
#ifndef EW_TESTS_SYNTHETIC_BOARDS_H
#define EW_TESTS_SYNTHETIC_BOARDS_H

#include "advise/law.h"

enum synthetic_law {
    SYNTHETIC_SAME,     /* the predictor's own laws with other parameters */
    SYNTHETIC_ADDED,    /* no overlap: times add up */
    SYNTHETIC_ROOFLINE, /* hard maximum of arithmetic, memory and loader */
    SYNTHETIC_TRAIN,    /* the form of the simulated boards */
    SYNTHETIC_AMDAHL, /* serial and parallel loader work, contention for cores, fractional exponents
                       */
    SYNTHETIC_INFER,  /* no loader: launches overlap with the accelerator */
    SYNTHETIC_LAWS
};

enum synthetic_board { SYNTHETIC_ORIN, SYNTHETIC_ORIN_NANO, SYNTHETIC_XAVIER, SYNTHETIC_BOARDS };

/* One network on one board. */
struct synthetic_workload {
    enum synthetic_law law;
    enum synthetic_board board;
    unsigned seed;
    double throttled; /* fraction of throttled runs */
};

/* Writes the board's modes to `out`, which has room for SYNTHETIC_MODES; returns their number. */
#define SYNTHETIC_MODES 29232
int synthetic_modes(enum synthetic_board b, struct ew_mode *out);

/* Time and power in mode i, with measurement noise and without. */
void synthetic_measure(const struct synthetic_workload *w, const struct ew_mode *m, int i,
                       double *time, double *power);
void synthetic_truth(const struct synthetic_workload *w, const struct ew_mode *m, double *time,
                     double *power);

#endif
