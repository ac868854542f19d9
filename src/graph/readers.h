/* SPDX-License-Identifier: Apache-2.0 */
/* Use lists: the readers of each value of a graph, for passes that rewire it.
 *
 * A pass that counts uses once and then moves them works with stale counts.  So passes rewire nodes
 * through the functions below, which keep the lists in step with the graph.  Every call takes
 * constant time per use that it changes. */
#ifndef EW_GRAPH_READERS_H
#define EW_GRAPH_READERS_H

#include "graph/graph.h"

struct ew_readers;

/* Borrows the graph.  Until ew_readers_free it must be rewired only through these functions, and
 * not swept; values may be added, and nodes if ew_readers_adopt follows. */
ew_err ew_readers_new(struct ew_graph *g, struct ew_readers **out);
/* Takes in the uses of nodes that were added at the end of the graph. */
ew_err ew_readers_adopt(struct ew_readers *r);
void ew_readers_free(struct ew_readers *r); /* asserts that the lists are those of the graph */
void ew_readers_free_ptr(void *ptr_to_ptr); /* for EW_CLEANUP */

/* Number of uses: input slots of nodes, and graph outputs. */
int ew_readers_count(const struct ew_readers *r, int value);
/* Iterates over the uses of a value, in no particular order: *at is -1 to start; false after the
 * last.  *node is -1 for a graph output; *slot is the input slot, or the number of the output. */
bool ew_readers_next(const struct ew_readers *r, int value, int *at, int *node, int *slot);
/* The node of a value's only use; -1: another number of uses, or a graph output. */
int ew_readers_only(const struct ew_readers *r, int value);
/* The producer of a value that has exactly one use; -1: no producer, or another number of uses. */
int ew_readers_sole_producer(const struct ew_readers *r, int value);

/* Sets input `slot` of the node to `value`; -1: absent. */
ew_err ew_readers_set(struct ew_readers *r, int node, int slot, int value);
/* Sets the node's inputs to a copy of in[0 .. n_in - 1]. */
ew_err ew_readers_set_all(struct ew_readers *r, int node, const int *in, int n_in);
/* Replaces all uses of `old`, graph outputs included, by uses of `new`. */
ew_err ew_readers_replace(struct ew_readers *r, int old, int new);
/* Drops all inputs of a node whose outputs are unused; the next sweep removes it. */
void ew_readers_detach(struct ew_readers *r, int node);

#endif
