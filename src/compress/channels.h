/* SPDX-License-Identifier: Apache-2.0 */
/* Which channels of a network can leave it, and what has to leave with them.
 *
 * A unit is what goes as a whole: the filters of all layers that a residual addition puts on top of
 * each other, with their biases and batch norms, the depthwise filters after them, and the slices
 * of every layer that reads them.  Units are found from the graph alone, by following channels
 * through its operators (the dependency graph of DepGraph, Fang et al., CVPR 2023, at the level of
 * single channels).  An operator that mixes channels in an unknown way keeps all of its inputs.
 *
 * Groups are units that the same layers make: the filters of one layer, mostly. */
#ifndef EW_COMPRESS_CHANNELS_H
#define EW_COMPRESS_CHANNELS_H

#include "graph/graph.h"

struct ew_channel_unit {
    int group;  /* -1: it is fixed */
    int keeper; /* node that fixes it; -1: none, or an input or output of the graph */
    bool is_fixed;
};

/* A layer that makes channels: convolution, dense layer. */
struct ew_channel_maker {
    int node;
    int weight, axis; /* value, and the axis of its filters */
    int bias;         /* value, or -1 */
    int norm;         /* batch norm that alone reads it, directly: a node; -1: none */
};

struct ew_channel_group {
    const char *name; /* of the first layer that makes it */
    int *units;
    int n;
};

struct ew_channels {
    struct ew_arena arena;
    int n_values;
    int *(*of)[EW_MAX_RANK]; /* [value][axis]: unit of each element; NULL: nothing can go */
    struct ew_channel_unit *units;
    int n_units;
    struct ew_channel_group *groups;
    int n_groups;
    struct ew_channel_maker *makers;
    int n_makers;
};

/* Reads the graph in the order in which it runs.  Release with fini, also after a failure. */
ew_err ew_channels_find(const struct ew_graph *g, struct ew_channels *out);
void ew_channels_fini(struct ew_channels *c);

/* Takes the units with gone[unit] out of the graph, which is the one they were found in or a clone
 * of it; shapes are inferred again.  With `shapes_only` parameters lose their data, for counting.
 * After a failure the graph is only fit to be freed. */
ew_err ew_channels_remove(struct ew_graph *g, const struct ew_channels *c, const bool *gone,
                          bool shapes_only);

/* ---- For channels.c and channel_rules.c ---- */

struct ew_channel_search {
    const struct ew_graph *g;
    struct ew_channels *c;
    int *axis;              /* by value: that of its channels; -1: nothing can go */
    int *parent;            /* union-find over units in the making */
    int *keeper;            /* by unit in the making: node that fixes it, FREE: none */
    int n, cap, cap_keeper; /* units in the making */
};

#define EW_UNIT_FREE (-2)

int ew_unit_root(struct ew_channel_search *s, int unit);
void ew_unit_join(struct ew_channel_search *s, int a, int b);
/* A list of fresh units. */
ew_err ew_unit_fresh(struct ew_channel_search *s, int64_t n, int **out);
/* The units of an axis; joined with those that it has already. */
ew_err ew_unit_set(struct ew_channel_search *s, int value, int axis, int *units);
/* All channels of the value stay, because of `node`. */
void ew_unit_fix(struct ew_channel_search *s, int value, int node);
/* The units of a value's channels, or NULL. */
int *ew_unit_of(const struct ew_channel_search *s, int value);
/* Follows the channels through one node. */
ew_err ew_channel_rule(struct ew_channel_search *s, int node);
/* Sizes that a node carries, once channels have gone: groups, parts, bounds, shapes. */
ew_err ew_channel_resize(struct ew_graph *g, const struct ew_channels *c, int node,
                         const bool *gone);
/* Where the bounds of the channels stand among a slice's lists; -1: it does not cut them, -2: not
 * known.  And the first channel that it takes of d. */
int ew_channel_slice_entry(const struct ew_graph *g, const struct ew_node *n, int axis, int rank);
int64_t ew_channel_slice_first(const struct ew_graph *g, const struct ew_node *n, int entry,
                               int64_t d);

#endif
