/* SPDX-License-Identifier: Apache-2.0 */
/* The graph: values and nodes in topological order, their inference and their checks.
 *
 * A graph is made by adding inputs, constants and nodes; shapes are concrete and follow from the
 * inputs' shapes whenever ew_graph_infer runs, so that another batch is: set the input's shape,
 * infer again.  Values that follow from constants and shapes alone (the Shape-Gather-Concat chains
 * that exporters write) are computed during inference and count as known from then on. */
#ifndef EW_GRAPH_GRAPH_H
#define EW_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "graph/op.h"
#include "graph/tensor.h"

enum ew_value_kind {
    EW_VALUE_ACT,   /* made by a node */
    EW_VALUE_INPUT, /* given at each run */
    EW_VALUE_CONST, /* fixed */
    EW_VALUE_PARAM, /* trainable; data NULL until loaded or initialised */
    EW_VALUE_STATE  /* kept by an operator, not trained: running statistics */
};

struct ew_value {
    const char *name; /* unique in the graph, never NULL */
    enum ew_value_kind kind;
    struct ew_tensor
        t;            /* data: contents of CONST, PARAM, STATE; known value of an ACT; else NULL */
    int producer;     /* node, or -1 */
    uint32_t dynamic; /* INPUT: bit i: dimension i may be changed (bit 0: the batch) */
    bool frozen;      /* PARAM: keep out of training */
    bool channels_last; /* INPUT: an image in our own order, which a file gets channels-first */
};

/* What a network has beside its nodes: parameters, running statistics, constants. */
static inline bool ew_value_is_weight(const struct ew_value *v)
{
    return v->kind != EW_VALUE_ACT && v->kind != EW_VALUE_INPUT;
}

/* True for values that have their data before any run: weights, and what inference has computed. */
static inline bool ew_value_is_known(const struct ew_value *v)
{
    return ew_value_is_weight(v) || (v->kind == EW_VALUE_ACT && v->t.data);
}

struct ew_node {
    const struct ew_op *op;
    const char *name; /* never NULL */
    void *attr;       /* op->attr_size bytes */
    int n_in, n_out;
    int *in;             /* values; -1: absent optional input */
    int *out;            /* values; -1: output that nobody asked for */
    bool channels_first; /* a SPATIAL operator in ONNX's order: fresh from a file or on the way to
                          * one; such a node can be inferred but not run */
};

/* Something that is known of the network beside the graph itself; see notes.c. */
struct ew_note {
    const char *key, *value;
    struct ew_note *next;
};

struct ew_graph {
    struct ew_arena arena; /* names, attributes, lists, constants */
    struct ew_arena known; /* values computed by the last inference */
    const char *name;
    struct ew_value *values;
    int n_values, cap_values;
    struct ew_node *nodes; /* producers before consumers */
    int n_nodes, cap_nodes;
    int *inputs;
    int n_inputs, cap_inputs;
    int *outputs;
    int n_outputs, cap_outputs;
    struct {
        int *slot; /* value + 1, or 0 */
        int size;  /* power of two */
        int used;
    } names;
    struct ew_note *notes;      /* in the order in which they came */
    struct ew_rewrite *rewrite; /* while one is under way (rewrite_begin), else NULL */
    bool inferred;              /* shapes are valid for the inputs' present shapes */
};

ew_err ew_graph_new(const char *name, struct ew_graph **out);
/* Releases with the public ew_graph_free(). */
ew_err ew_graph_clone(const struct ew_graph *g,
                      struct ew_graph **out); /* borrows constants' data */

/* Notes: texts by key, both copied; setting one replaces it.  NULL: there is none. */
const char *ew_graph_note(const struct ew_graph *g, const char *key);
ew_err ew_graph_note_set(struct ew_graph *g, const char *key, const char *value);
ew_err ew_graph_notes_copy(const struct ew_graph *from, struct ew_graph *to);

/* Each returns a value's number through `out`.  Names are copied; NULL or a taken one gets a
 * suffix. */
ew_err ew_graph_input(struct ew_graph *g, const char *name, enum ew_dtype dtype,
                      const struct ew_shape *shape, int *out);
/* `data` is copied into the graph when `copy`, else borrowed; it may be NULL for PARAM and STATE.
 */
ew_err ew_graph_const(struct ew_graph *g, const char *name, enum ew_value_kind kind,
                      const struct ew_tensor *t, bool copy, int *out);
/* A 1-D int64 constant. */
ew_err ew_graph_const_ints(struct ew_graph *g, const char *name, const int64_t *v, int n, int *out);
/* A float32 scalar constant. */
ew_err ew_graph_const_float(struct ew_graph *g, const char *name, float v, int *out);

/* Inputs of a new node: EW_INPUTS(x, weights, -1), or ew_inputs(list, n). */
struct ew_inputs {
    const int *in; /* values; -1: absent optional input */
    int n;
};

static inline struct ew_inputs ew_inputs(const int *in, int n)
{
    return (struct ew_inputs){in, n};
}

#define EW_INPUTS(...)                                                                             \
    ew_inputs((const int[]){__VA_ARGS__}, (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))

/* Adds a node and a fresh value (*out).  `attr` is copied; NULL: all defaults; a name that is NULL
 * is made up.  Checks the number of inputs, and infers at once when all its inputs' shapes are
 * known, so that a builder meets its error where it made it. */
ew_err ew_graph_add(struct ew_graph *g, const struct ew_op *op, const char *name, const void *attr,
                    struct ew_inputs in, int *out);
/* The same from a node, with n_out fresh values (out[i] on return): op, name, attr, in, n_in, n_out
 * and channels_first are read. */
ew_err ew_graph_add_node(struct ew_graph *g, const struct ew_node *n, int *out);
ew_err ew_graph_output(struct ew_graph *g, int value);
/* A value that another file names `name`; renaming keeps names unique. */
ew_err ew_graph_rename(struct ew_graph *g, int value, const char *name);
/* The same, but another value that has the name already loses it (unless it is an input). */
ew_err ew_graph_claim_name(struct ew_graph *g, int value, const char *name);

/* Makes an input a constant (shape-like inputs, before planning); the data is copied. */
ew_err ew_graph_bind(struct ew_graph *g, int value, const struct ew_tensor *t);
/* Sets dimension 0 of every input whose batch is dynamic; infers. */
ew_err ew_graph_set_batch(struct ew_graph *g, int64_t batch);
/* The batch of the inputs whose batch is dynamic; fails where they differ.  1 where there is none.
 */
ew_err ew_graph_batch(const struct ew_graph *g, int64_t *out);
/* How many images a run takes: the batch, or where it is fixed what the first input has. */
int64_t ew_graph_images(const struct ew_graph *g);

/* Shapes, types and known values of every value, from the inputs' shapes. */
ew_err ew_graph_infer(struct ew_graph *g);
/* One node alone, its inputs being inferred. */
ew_err ew_graph_infer_node(struct ew_graph *g, int node);
/* Checks the invariants (order, numbers, names) and drops nothing. */
ew_err ew_graph_check(const struct ew_graph *g);
/* Values that inference has computed from constants alone, whatever the inputs' shapes, become
 * constants of their own; the nodes that made them are left to the sweep. */
ew_err ew_graph_keep_known(struct ew_graph *g);
/* Turns constants in an operator's param_in and state_in slots into PARAM and STATE, but for those
 * from which a shape, axes and the like are computed: they stay as they are, so that these remain
 * known. */
ew_err ew_graph_mark_params(struct ew_graph *g);
/* Removes nodes that no output needs, and values that nobody uses any more. */
ew_err ew_graph_sweep(struct ew_graph *g);

/* The tensor pointers and call of a node, for infer, cost and tests: in[] and out[] point into
 * g->values.  `slots` must hold n_in + n_out pointers. */
void ew_graph_call(const struct ew_graph *g, const struct ew_node *n, struct ew_tensor **slots,
                   struct ew_call *out);

/* Moves the graph between ONNX's order (every SPATIAL node channels_first) and the order in which
 * it runs: transposes are put round the SPATIAL nodes, pushed through what lets them pass, and
 * cancelled. Inputs and outputs keep their layout.  Values are renumbered.  After a failure the
 * graph is only fit to be freed. */
ew_err ew_graph_channels_last(struct ew_graph *g);
ew_err ew_graph_channels_first(struct ew_graph *g);

/* Puts the nodes from `first` on, which were added last, into the place of `node`, which goes; who
 * used its output i uses out[i] from now on, and that value takes over its name. */
ew_err ew_graph_splice(struct ew_graph *g, int node, int first, const int *out);
/* Between begin and end a splice costs what it adds and rewires, not the length of the graph: nodes
 * keep their numbers, those that are spliced in take their places at the end, and none of these is
 * replaced again meanwhile.  Inputs of nodes are changed through ew_graph_readers alone. */
ew_err ew_graph_rewrite_begin(struct ew_graph *g);
ew_err ew_graph_rewrite_end(struct ew_graph *g);
/* Who reads each value, kept up to date by the rewrite; NULL: none is under way. */
struct ew_readers *ew_graph_readers(const struct ew_graph *g);
/* Replaces every node whose operator says so (onnx.expand) by plain ones; for the exporter. */
ew_err ew_graph_expand(struct ew_graph *g);
/* Replaces Reshape-Transpose-Reshape that shuffles channels by one channel_shuffle node, so that it
 * can be laid out; for the importer, before the graph is moved to channels-last. */
ew_err ew_graph_find_shuffles(struct ew_graph *g);

/* The value called `name`, or -1. */
int ew_graph_find(const struct ew_graph *g, const char *name);

/* Cost of one node for the present shapes; parameters, which nodes may share, are left out. */
void ew_graph_node_cost(const struct ew_graph *g, int node, struct ew_cost *out);
/* Of the whole graph, and by node where `each` is not NULL: a parameter counts at the first node
 * that reads it. */
ew_err ew_graph_cost(const struct ew_graph *g, struct ew_cost *total, struct ew_cost *each);

/* Gives every PARAM and STATE without data its own memory and zeroes it. */
ew_err ew_graph_alloc_weights(struct ew_graph *g);

#endif
