/* SPDX-License-Identifier: Apache-2.0 */
/* The table of losses.  A loss is composed of the graph's operators, so that plans, gradients,
 * kernels and devices need not know it. */
#ifndef EW_MODEL_LOSS_TABLE_H
#define EW_MODEL_LOSS_TABLE_H

#include "graph/graph.h"

struct ew_loss {
    const char *name; /* in the CLI and in files: never changes */
    const char *help;
    /* Adds the mean loss between two values: if of_labels, scores [N, classes] and labels [N]
     * int64, else predictions and targets of the same shape. */
    ew_err (*add)(struct ew_graph *g, int prediction, int target, int *loss);
    bool of_labels;
    /* Loss of one element, for evaluation; NULL if of_labels. */
    double (*of_element)(double prediction, double target);
};

/* "auto", the table's names, NULL: choices of an option. */
extern const char *const ew_loss_names[];

/* The loss of a choice: that row, or for "auto" (0) mean squared error for an autoencoder and
 * cross-entropy otherwise.  bce takes probabilities if the network ends in a sigmoid. */
const struct ew_loss *ew_loss_chosen(int choice, const struct ew_graph *net);

/* True for an autoencoder: the output has the input's shape, and the input is the target. */
bool ew_net_reconstructs(const struct ew_graph *net);

/* The loss named in a checkpoint's options, lines "name = value"; NULL: none. */
const struct ew_loss *ew_loss_of_options(const char *options, const struct ew_graph *net);

/* Mean over n elements of a loss without labels. */
double ew_loss_of(const struct ew_loss *loss, const float *prediction, const float *target,
                  int64_t n);
/* The same for n scores and a one-hot label. */
double ew_loss_of_label(const struct ew_loss *loss, const float *scores, int64_t n, int64_t label);

#endif
