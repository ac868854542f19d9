/* SPDX-License-Identifier: Apache-2.0 */
/* A network on every size of DPU, number of cores, clock and memory: what each configuration costs
 * and gives, which fit a board's chip, and which of these no other one beats. */
#ifndef EW_BACKEND_DPU_SWEEP_H
#define EW_BACKEND_DPU_SWEEP_H

#include "backend/dpu/dpu_model.h"

#define EW_DPU_SWEEP_POINTS (8 * 4 * 3 * 2) /* sizes, cores, clocks, memories */

struct ew_dpu_point {
    struct ew_dpu_config config;
    struct ew_dpu_times times;
    int dsp, bram; /* of all cores */
    bool fits;     /* into the board's chip */
    bool front;    /* no other one that fits is as good in latency, throughput, DSP slices and block
                    * RAM and better in one of them */
};

struct ew_dpu_sweep {
    const struct ew_dpu_board *board;
    struct ew_dpu_point points[EW_DPU_SWEEP_POINTS];
    int n, n_fit, n_front;
};

/* On the chip of base->board. */
void ew_dpu_sweep(struct ew_dpu_net *n, const struct ew_dpu_config *base, struct ew_dpu_sweep *out);

#endif
