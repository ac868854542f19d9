/* SPDX-License-Identifier: Apache-2.0 */
/* Work of one run of a plan, step by step: arithmetic, bytes moved, kernels to launch.
 * advise/simulate.h turns it into a board's time and power. */
#ifndef EW_ADVISE_SIM_LOAD_H
#define EW_ADVISE_SIM_LOAD_H

#include "base/mem.h"
#include "graph/graph.h"

struct ew_sim_step {
    const char *name, *op; /* op "": a step of the plan's own */
    const char *phase;     /* "forward", "backward", "update" */
    double flops, bytes;
    int64_t groups; /* of a grouped convolution; else 1 */
};

struct ew_sim_load {
    struct ew_sim_step *steps;
    int n;
    int64_t batch;
    double flops, bytes;  /* sums */
    double grouped_flops; /* of them, in grouped convolutions */
    int products;         /* steps that are convolutions or matrix products */
    double root_groups;   /* sum of the roots of the groups of grouped convolutions */
    double input_bytes;   /* of a batch */
    int64_t memory_bytes; /* activations and weights */
    bool train;
};

/* The steps of the network's plan, an operator each, whatever this machine would fuse; those of a
 * training step where it has an objective and `train` is set.  The graph is not changed; all lives
 * in the arena. */
ew_err ew_sim_load_of(struct ew_arena *a, const struct ew_graph *g, bool train,
                      struct ew_sim_load *out);

#endif
