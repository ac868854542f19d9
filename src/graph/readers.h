/* SPDX-License-Identifier: Apache-2.0 */
/* Who reads each value of a graph, for passes that rewire it.
 *
 * A pass that counts readers once and then moves them decides on counts that no longer hold.  So
 * nodes are rewired through the functions below, which keep the lists: a count is always that of
 * the graph as it stands.  Every call takes constant time for each read that it changes. */
#ifndef EW_GRAPH_READERS_H
#define EW_GRAPH_READERS_H

#include "graph/graph.h"

struct ew_readers;

/* Borrows the graph, which must not be rewired, swept or extended by nodes in another way until
 * ew_readers_free; values may be added. */
ew_err ew_readers_new(struct ew_graph *g, struct ew_readers **out);
/* Nodes were added at the end of the graph: what they read counts from now on. */
ew_err ew_readers_adopt(struct ew_readers *r);
void ew_readers_free(struct ew_readers *r); /* asserts that nobody rewired the graph by hand */
void ew_readers_free_ptr(void *ptr_to_ptr); /* for EW_CLEANUP */

/* Reads by nodes, each input slot counting once, and as outputs of the graph. */
int ew_readers_count(const struct ew_readers *r, int value);
/* One read after the other, in no order: starts at *at = -1; false after the last.  *node is -1
 * for an output of the graph; *slot the input, or the number of the output. */
bool ew_readers_next(const struct ew_readers *r, int value, int *at, int *node, int *slot);
/* The node that alone reads the value, once; -1: another number of reads, or a graph output. */
int ew_readers_only(const struct ew_readers *r, int value);
/* The node that makes the value, where it is read once; -1: none, or it is read more often. */
int ew_readers_sole_maker(const struct ew_readers *r, int value);

/* Input `slot` of the node becomes `value`; -1: absent. */
ew_err ew_readers_set(struct ew_readers *r, int node, int slot, int value);
/* The node's inputs become a copy of in[0 .. n_in - 1]. */
ew_err ew_readers_set_all(struct ew_readers *r, int node, const int *in, int n_in);
/* All that read `old` read `new` instead, outputs of the graph included. */
ew_err ew_readers_replace(struct ew_readers *r, int old, int new);
/* The node reads nothing any more: nobody needs what it makes, and the sweep will take it. */
void ew_readers_detach(struct ew_readers *r, int node);

#endif
