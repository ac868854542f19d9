/* SPDX-License-Identifier: Apache-2.0 */
/* Gates: a factor a channel after each layer whose width is searched for, and the pruner that
 * closes them one after the other (NeuralScale, section 3.1; Molchanov et al., CVPR 2019). */
#ifndef EW_SCALE_GATES_H
#define EW_SCALE_GATES_H

#include "scale/power_law.h"

/* Puts gates into a network of the zoo, all ones: parameters "gate.0" and so on, in the order of
 * its widths.  Fails for networks whose gates are not known. */
ew_err ew_gates_insert(struct ew_graph *g, const char *network, int n);
/* Fails as that would, without work. */
ew_err ew_gates_check(const struct ew_scaling *s);
/* The value of gate k's parameter. */
int ew_gate_value(const struct ew_graph *g, int k);

/* ---- Pruning ---- */

struct ew_pruner_opts {
    double fraction; /* of all units that are to go in the end */
    int per_step;    /* units */
    int every;       /* minibatches */
};

struct ew_pruner {
    struct ew_pruner_opts o;
    int gates, units, most, steps; /* units in all; to be pruned; steps that takes */
    int *first;                    /* by gate: its first unit; [gates] is units */
    bool *open;                    /* by unit */
    double *sum;                   /* by unit: of criteria since the last step */
    struct {
        double value;
        int unit;
    } * order;
    int batches, step, closed; /* minibatches seen, steps done, units closed */
    int since;                 /* minibatches in `sum` */
    bool *pruned;              /* by gate: it has lost a unit */
    bool done;
    struct ew_prune_rows rows;
};

ew_err ew_pruner_open(const int32_t *widths, int gates, const struct ew_pruner_opts *o,
                      struct ew_pruner *out);
void ew_pruner_close(struct ew_pruner *p);

/* One minibatch: gradients of the loss by unit, gates being 1 or 0.  Sets p->done, and then has at
 * least one row, when nothing is left to do. */
ew_err ew_pruner_batch(struct ew_pruner *p, const double *gradients);

#endif
