/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates a network on every DPU size, number of cores, clock and memory: performance and
 * resources of each configuration, whether it fits the board's chip, and the Pareto front. */
#ifndef EW_BACKEND_DPU_SWEEP_H
#define EW_BACKEND_DPU_SWEEP_H

#include "backend/dpu/dpu_model.h"

#define EW_DPU_SWEEP_POINTS (8 * 4 * 3 * 2) /* sizes, cores, clocks, memories */

struct ew_dpu_point {
    struct ew_dpu_config config;
    struct ew_dpu_times times;
    int dsp, bram; /* total of all cores */
    bool fits;     /* the board's chip */
    bool front;    /* Pareto-optimal among those that fit, in latency, throughput, DSP slices and
                    * block RAM */
};

struct ew_dpu_sweep {
    const struct ew_dpu_board *board;
    struct ew_dpu_point points[EW_DPU_SWEEP_POINTS];
    int n, n_fit, n_front;
};

/* Fit is checked against the chip of base->board. */
void ew_dpu_sweep(struct ew_dpu_net *n, const struct ew_dpu_config *base, struct ew_dpu_sweep *out);

#endif
