/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic measurements as from real boards: training and inference in modes measured in random
 * order, on a board that warms up, throttles and lowers its clocks; clocks rounded to the board's
 * steps, power rails with offsets, coarse sensors, heavy-tailed noise that grows with the loader's
 * share.  Written after the predictor's constants were fixed; after changing the predictor because
 * of it, draw a new one. */
#ifndef EW_TESTS_FIELD_BOARD_H
#define EW_TESTS_FIELD_BOARD_H

#include "advise/law.h"

struct field_workload {
    unsigned seed;      /* for network, board and noise; even: training */
    struct ew_mode top; /* the board's highest clocks and core count */
};

/* Noisy time and power of measurement i, in mode m. */
void field_measure(const struct field_workload *w, const struct ew_mode *m, int i, double *time,
                   double *power);

#endif
