/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up measurements as they come from real boards: training and inference of networks in modes
 * measured in random order, on a board that warms up, throttles and lowers clocks; clocks that the
 * board rounds to its steps, rails with offsets, sensors of few steps, noise that grows with the
 * loader's share and has heavy tails.  Written after the predictor's constants were fixed; whoever
 * changes the predictor by what it shows draws a new one. */
#ifndef EW_TESTS_FIELD_BOARD_H
#define EW_TESTS_FIELD_BOARD_H

#include "advise/law.h"

struct field_workload {
    unsigned seed;      /* of network, board and noise; training where it is even */
    struct ew_mode top; /* the board's highest settings */
};

/* Time and power at mode number i, with noise. */
void field_measure(const struct field_workload *w, const struct ew_mode *m, int i, double *time,
                   double *power);

#endif
