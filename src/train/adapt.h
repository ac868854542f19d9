/* SPDX-License-Identifier: Apache-2.0 */
/* Networks made ready for training: images as the loader gives them, another head, weights of
 * another file, parts that stay as they are.  All fail without harm but for their graph, which is
 * then only fit to be freed. */
#ifndef EW_TRAIN_ADAPT_H
#define EW_TRAIN_ADAPT_H

#include "graph/graph.h"

/* Makes the first input [N, H, W, C] where a file has it as [N, C, H, W]. */
ew_err ew_adapt_images(struct ew_graph *g);

/* Ends the network in scores: a softmax that closes it goes, since the loss has its own. */
ew_err ew_adapt_scores(struct ew_graph *g);

/* Gives the network `classes` classes: its last layer with weights is replaced by one with fresh
 * ones.  Nothing is done where it has as many already and not `anyway`. */
ew_err ew_adapt_head(struct ew_graph *g, int64_t classes, uint64_t seed, bool anyway);

/* Marks weights as frozen: "backbone" is all but the last layer's; else names or patterns as the
 * shell has them, with commas between.  *n is their number. */
ew_err ew_adapt_freeze(struct ew_graph *g, const char *what, int *n);

/* Copies weights and running statistics of `from` by name, where shapes agree.  *n of them were
 * found; fails where there is none. */
ew_err ew_adapt_copy(struct ew_graph *g, const struct ew_graph *from, int *n);

/* Cuts the network after what depends on no trainable weight: *frozen ends there, its outputs are
 * the first inputs of *rest.  Weights are shared with g, which must outlive both.  *frozen is NULL,
 * and *rest a copy, where nothing with weights is frozen. */
ew_err ew_adapt_cut(const struct ew_graph *g, struct ew_graph **frozen, struct ew_graph **rest);

#endif
