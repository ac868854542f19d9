/* SPDX-License-Identifier: Apache-2.0 */
/* A synthetic board that differs from the predictor's laws: networks of layers, each bound by
 * arithmetic, memory or launches; whole loader workers that compete for cores; voltage tables;
 * quantised sensors. */
#ifndef EW_TESTS_LAYERED_BOARD_H
#define EW_TESTS_LAYERED_BOARD_H

#include "advise/law.h"

enum layered_kind {
    LAYERED_TRAINING,
    LAYERED_MEMORY, /* most layers are memory-bound */
    LAYERED_CPU,    /* slow decoding and launches */
    LAYERED_INFER,  /* no loader */
    LAYERED_KNEE,   /* the lowest memory and CPU clocks cost more than proportionally */
    LAYERED_KINDS
};

struct layered_workload {
    enum layered_kind kind;
    unsigned seed, board_seed;
    struct ew_mode top; /* the board's highest clocks and core count */
};

/* Time and power in mode i, with measurement noise and without. */
void layered_measure(const struct layered_workload *w, const struct ew_mode *m, int i, double *time,
                     double *power);
void layered_truth(const struct layered_workload *w, const struct ew_mode *m, double *time,
                   double *power);

#endif
