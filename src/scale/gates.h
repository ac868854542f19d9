/* SPDX-License-Identifier: Apache-2.0 */
/* Gates: a factor per channel after each layer whose width is searched, and the pruner that closes
 * them step by step (NeuralScale, section 3.1; Molchanov et al., CVPR 2019). */
#ifndef EW_SCALE_GATES_H
#define EW_SCALE_GATES_H

#include "scale/power_law.h"

/* Inserts gates, all 1, into a zoo network: parameters "gate.0", "gate.1", ... in the order of its
 * widths.  Fails for networks without known gate positions. */
ew_err ew_gates_insert(struct ew_graph *g, const char *network, int n);
/* Fails if that would fail. */
ew_err ew_gates_check(const struct ew_scaling *s);
/* The value of gate k's parameter. */
int ew_gate_value(const struct ew_graph *g, int k);

/* ---- Pruning ---- */

struct ew_pruner_opts {
    double fraction; /* of all units, to be pruned in the end */
    int per_step;    /* units */
    int every;       /* minibatches per step */
};

struct ew_pruner {
    struct ew_pruner_opts o;
    int gates, units, most, steps; /* units in total; units to prune; steps needed */
    int *first;                    /* by gate: its first unit; [gates] is units */
    bool *open;                    /* by unit */
    double *sum;                   /* by unit: accumulated criterion since the last step */
    struct {
        double value;
        int unit;
    } * order;
    int batches, step, closed; /* minibatches seen, steps done, units closed */
    int since;                 /* minibatches accumulated in `sum` */
    bool *pruned;              /* by gate: has lost a unit */
    bool done;
    struct ew_prune_rows rows;
};

ew_err ew_pruner_open(const int32_t *widths, int gates, const struct ew_pruner_opts *o,
                      struct ew_pruner *out);
void ew_pruner_close(struct ew_pruner *p);

/* Processes one minibatch: gradients of the loss by unit at gates of 1 or 0.  Sets p->done when
 * finished; there is at least one row then. */
ew_err ew_pruner_batch(struct ew_pruner *p, const double *gradients);

#endif
