/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up workloads that the predictor was never mended on: kernels that wait for their launches,
 * a pipeline of three stages, a small network of the host's, a loader that is short of cores;
 * boards that lower the accelerator's clock above a budget of power; noise of 0.2 to 4 %, normal,
 * with heavy tails, or with throttled runs.  Whoever changes the predictor by what these show draws
 * new ones. */
#ifndef EW_TESTS_BLIND_BOARD_H
#define EW_TESTS_BLIND_BOARD_H

#include "advise/law.h"

enum blind_kind { BLIND_KERNELS, BLIND_PIPELINE, BLIND_SMALL, BLIND_LOADER, BLIND_KINDS };

struct blind_workload {
    unsigned seed;      /* of network, board and noise; the kind is seed % BLIND_KINDS */
    struct ew_mode top; /* the board's highest settings */
};

/* Time and power at mode number i, with noise. */
void blind_measure(const struct blind_workload *w, const struct ew_mode *m, int i, double *time,
                   double *power);

#endif
