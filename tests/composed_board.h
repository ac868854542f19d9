/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up workloads composed of forms that the predictor's laws do not have: an accelerator, a
 * host, how they overlap, power and noise, each drawn from several.  The forms come in two halves:
 * the predictor was mended on the first, the second only says how good it is on what nobody
 * looked at. */
#ifndef EW_TESTS_COMPOSED_BOARD_H
#define EW_TESTS_COMPOSED_BOARD_H

#include "advise/law.h"

enum composed_half { COMPOSED_SEEN, COMPOSED_HELD_BACK };

struct composed_workload {
    enum composed_half half;
    unsigned seed;       /* of the network */
    unsigned board_seed; /* of voltages and idle power */
    struct ew_mode top;  /* the board's highest mode */
};

/* Time and power at mode number i, with noise. */
void composed_measure(const struct composed_workload *w, const struct ew_mode *m, int i,
                      double *time, double *power);

#endif
