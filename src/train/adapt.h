/* SPDX-License-Identifier: Apache-2.0 */
/* Preparing networks for training: the loader's layout, a new head, weights of another file, frozen
 * layers.  After a failure the graph can only be freed. */
#ifndef EW_TRAIN_ADAPT_H
#define EW_TRAIN_ADAPT_H

#include "graph/graph.h"

/* Converts a first input [N, C, H, W] to [N, H, W, C]; one that is already is marked so.  Batch
 * norms of ONNX's training_mode use batch statistics in training only. */
ew_err ew_adapt_images(struct ew_graph *g);
/* Fails unless that was done: the only input is what loaders make. */
ew_err ew_adapt_check(const struct ew_graph *g);

/* Removes a final softmax, since the loss includes it. */
ew_err ew_adapt_scores(struct ew_graph *g);

/* Replaces the last layer with weights by a randomly initialised one with `classes` outputs.  Does
 * nothing if it has that many already, unless `anyway`. */
ew_err ew_adapt_head(struct ew_graph *g, int64_t classes, uint64_t seed, bool anyway);

/* Freezes weights: "backbone" is all but the last layer's; else comma-separated names or shell
 * patterns.  *n is their number. */
ew_err ew_adapt_freeze(struct ew_graph *g, const char *what, int *n);

/* Copies weights and running statistics of `from` by name, where shapes agree; *n is their number.
 * Fails if there are none. */
ew_err ew_adapt_copy(struct ew_graph *g, const struct ew_graph *from, int *n);

/* Splits the network behind everything that depends on no trainable weight: the outputs of *frozen
 * are the first inputs of *trainable.  Both borrow g's weights.  If nothing with weights is frozen,
 * *frozen is NULL and *trainable a copy. */
ew_err ew_adapt_cut(const struct ew_graph *g, struct ew_graph **frozen,
                    struct ew_graph **trainable);

#endif
