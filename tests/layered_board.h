/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up board that is nothing like the predictor's laws: networks of layers, each bound by
 * arithmetic, memory or its launch; a whole number of loader workers that compete for cores;
 * voltage tables; sensors that count in steps. */
#ifndef EW_TESTS_LAYERED_BOARD_H
#define EW_TESTS_LAYERED_BOARD_H

#include "advise/law.h"

enum layered_kind {
    LAYERED_TRAINING,
    LAYERED_MEMORY, /* most layers wait for memory */
    LAYERED_CPU,    /* slow decoding and launches */
    LAYERED_INFER,  /* no loader */
    LAYERED_KNEE,   /* the lowest memory and CPU clocks cost more than their share */
    LAYERED_KINDS
};

struct layered_workload {
    enum layered_kind kind;
    unsigned seed, board_seed;
    struct ew_mode top; /* the board's highest settings */
};

/* Time and power at mode i: of a measurement, and without noise. */
void layered_measure(const struct layered_workload *w, const struct ew_mode *m, int i, double *time,
                     double *power);
void layered_truth(const struct layered_workload *w, const struct ew_mode *m, double *time,
                   double *power);

#endif
