/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic workloads composed of forms that the predictor's laws do not contain: accelerator,
 * host, overlap, power and noise, each drawn from several.  The forms come in two halves: the
 * predictor was tuned on the first; the second is held out. */
#ifndef EW_TESTS_COMPOSED_BOARD_H
#define EW_TESTS_COMPOSED_BOARD_H

#include "advise/law.h"

enum composed_half { COMPOSED_SEEN, COMPOSED_HELD_BACK };

struct composed_workload {
    enum composed_half half;
    unsigned seed;       /* for the network */
    unsigned board_seed; /* for voltages and idle power */
    struct ew_mode top;  /* the board's highest mode */
};

/* Noisy time and power of measurement i, in mode m. */
void composed_measure(const struct composed_workload *w, const struct ew_mode *m, int i,
                      double *time, double *power);

#endif
