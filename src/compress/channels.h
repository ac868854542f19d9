/* SPDX-License-Identifier: Apache-2.0 */
/* Structured pruning: which channels of a network can be removed, and what must be removed with
 * them.
 *
 * A unit is a set of coupled channels, which can only be removed together: the filters of all
 * layers that a residual addition sums, with their biases and batch norms, the depthwise filters
 * after them, and the input slices of every layer that reads them.  Units are found from the graph
 * alone, by propagating channels through its operators (the dependency graph of DepGraph, Fang et
 * al., CVPR 2023, at the level of single channels).  Operators that mix channels in an unknown way
 * fix all of their inputs.
 *
 * Groups are units that the same layers produce: usually the filters of one layer. */
#ifndef EW_COMPRESS_CHANNELS_H
#define EW_COMPRESS_CHANNELS_H

#include "graph/graph.h"

struct ew_channel_unit {
    int group;  /* -1: fixed */
    int keeper; /* node that fixes the unit; -1: none, or an input or output of the graph */
    bool is_fixed;
};

/* A layer that produces channels: convolution, dense layer. */
struct ew_channel_producer {
    int node;
    int weight, axis; /* value, and the axis of output channels */
    int bias;         /* value, or -1 */
    int norm;         /* node of the batch norm that is its only reader; -1: none */
};

struct ew_channel_group {
    const char *name; /* of the first layer that produces it */
    int *units;
    int n;
};

struct ew_channels {
    struct ew_arena arena;
    int n_values;
    int *(*of)[EW_MAX_RANK]; /* [value][axis]: unit of each index; NULL: nothing can be removed */
    struct ew_channel_unit *units;
    int n_units;
    struct ew_channel_group *groups;
    int n_groups;
    struct ew_channel_producer *producers;
    int n_producers;
};

/* Finds units and groups; the graph must be inferred.  Free with fini, also after a failure. */
ew_err ew_channels_find(const struct ew_graph *g, struct ew_channels *out);
void ew_channels_fini(struct ew_channels *c);

/* Removes the units with gone[unit] from the graph in which they were found, or a clone of it, and
 * infers.  With `shapes_only` parameters lose their data, for counting.  After a failure the graph
 * can only be freed. */
ew_err ew_channels_remove(struct ew_graph *g, const struct ew_channels *c, const bool *gone,
                          bool shapes_only);

/* ---- For channels.c and channel_rules.c ---- */

struct ew_channel_search {
    const struct ew_graph *g;
    struct ew_channels *c;
    int *uses;              /* by value: reads by nodes and as an output */
    int *axis;              /* by value: its channel axis; -1: nothing can be removed */
    int *parent;            /* union-find over provisional units */
    int *keeper;            /* by provisional unit: node that fixes it; FREE: none */
    int n, cap, cap_keeper; /* number of provisional units */
};

#define EW_UNIT_FREE (-2)

int ew_unit_root(struct ew_channel_search *s, int unit);
void ew_unit_join(struct ew_channel_search *s, int a, int b);
/* n new units. */
ew_err ew_unit_fresh(struct ew_channel_search *s, int64_t n, int **out);
/* Sets the units of an axis, or joins them with those it has. */
ew_err ew_unit_set(struct ew_channel_search *s, int value, int axis, int *units);
/* Fixes all channels of the value, because of `node`. */
void ew_unit_fix(struct ew_channel_search *s, int value, int node);
/* The units of a value's channels, or NULL. */
int *ew_unit_of(const struct ew_channel_search *s, int value);
/* Propagates channels through one node. */
ew_err ew_channel_rule(struct ew_channel_search *s, int node);
/* Updates sizes in a node's attributes and constant inputs after channels are removed: groups,
 * split sizes, slice bounds, shapes. */
ew_err ew_channel_resize(struct ew_graph *g, const struct ew_channels *c, int node,
                         const bool *gone);
/* Index of the channel axis in a slice's lists (-1: the slice does not cut it, -2: unknown), and
 * the first of d channels that it takes. */
int ew_channel_slice_entry(const struct ew_graph *g, const struct ew_node *n, int axis, int rank);
int64_t ew_channel_slice_first(const struct ew_graph *g, const struct ew_node *n, int entry,
                               int64_t d);

#endif
