/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic workloads that the predictor was never tuned on: launch-bound kernels, a three-stage
 * pipeline, a small host-bound network, a data loader short of cores; boards that lower the
 * accelerator's clock above a power budget; noise of 0.2 to 4 %, normal, heavy-tailed, or with
 * throttled runs.  After changing the predictor because of these, draw new ones. */
#ifndef EW_TESTS_BLIND_BOARD_H
#define EW_TESTS_BLIND_BOARD_H

#include "advise/law.h"

enum blind_kind { BLIND_KERNELS, BLIND_PIPELINE, BLIND_SMALL, BLIND_LOADER, BLIND_KINDS };

struct blind_workload {
    unsigned seed;      /* for network, board and noise; the kind is seed % BLIND_KINDS */
    struct ew_mode top; /* the board's highest clocks and core count */
};

/* Noisy time and power of measurement i, in mode m. */
void blind_measure(const struct blind_workload *w, const struct ew_mode *m, int i, double *time,
                   double *power);

#endif
