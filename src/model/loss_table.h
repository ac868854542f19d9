/* SPDX-License-Identifier: Apache-2.0 */
/* Losses that a network can be trained for: a table, one row each.  A loss is made of the graph's
 * own operators, so that plans, gradients, kernels and devices need to know nothing of it. */
#ifndef EW_MODEL_LOSS_TABLE_H
#define EW_MODEL_LOSS_TABLE_H

#include "graph/graph.h"

struct ew_loss {
    const char *name; /* in the CLI and on disk: never changes */
    const char *help;
    /* Adds the mean loss between two values: of labels [N] int64 for scores [N, classes] where
     * of_labels, else of targets in the predictions' shape. */
    ew_err (*add)(struct ew_graph *g, int prediction, int target, int *loss);
    bool of_labels;
    /* One element's loss, for evaluations; NULL where of_labels. */
    double (*of_element)(double prediction, double target);
};

/* "auto", then the table's names, then NULL: choices of an option. */
extern const char *const ew_loss_names[];

/* The loss of a choice: that row, or for "auto" (0) mean squared error where the network gives back
 * its input's shape and cross-entropy elsewhere. */
const struct ew_loss *ew_loss_chosen(int choice, const struct ew_graph *net);

/* Whether the network's output has its input's shape: its target is the input itself. */
bool ew_net_reconstructs(const struct ew_graph *net);

/* The loss that lines "name = value" name, the options that a checkpoint keeps; NULL: none. */
const struct ew_loss *ew_loss_of_options(const char *options, const struct ew_graph *net);

/* The mean over n elements of a loss that is not of labels. */
double ew_loss_of(const struct ew_loss *loss, const float *prediction, const float *target,
                  int64_t n);
/* The same of n scores and the label's row of 0 and a 1. */
double ew_loss_of_label(const struct ew_loss *loss, const float *scores, int64_t n, int64_t label);

#endif
