/* SPDX-License-Identifier: Apache-2.0 */
/* What one run of a plan costs on a CPU, step by step, by the kernels that this machine would take:
 * the cycles that the catalogue estimates, else arithmetic, and the bytes that pass.  The law of
 * work (work_law.h) turns it into a machine's time. */
#ifndef EW_ADVISE_WORK_LOAD_H
#define EW_ADVISE_WORK_LOAD_H

#include "base/mem.h"
#include "graph/graph.h"

struct ew_work_step {
    double cycles; /* of one core, estimated; 0: no estimate */
    double flops;  /* where there is none */
    double bytes; /* read and written; without weights where there is an estimate, which has them */
};

struct ew_work_load {
    struct ew_work_step *steps;
    int n;
    double cycles;       /* sum, 32 operations without an estimate counted as one */
    bool integers;       /* most of it is done by int8 kernels */
    double memory_bytes; /* activations and weights */
};

/* Steps that only rename memory are left out.  Weights need no values, but without them nothing is
 * folded.  The graph is not changed; all lives in the arena. */
ew_err ew_work_load_of(struct ew_arena *a, const struct ew_graph *g, bool train,
                       struct ew_work_load *out);

#endif
