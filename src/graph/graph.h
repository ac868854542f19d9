/* SPDX-License-Identifier: Apache-2.0 */
/* The graph: values and nodes in topological order, with shape inference and checks.
 *
 * A graph is built by adding inputs, constants and nodes.  Shapes are concrete: ew_graph_infer
 * derives them from the shapes of the inputs, so a new batch means setting the inputs' shapes and
 * inferring again.  Inference also evaluates values that depend on constants and shapes alone (the
 * Shape-Gather-Concat chains that exporters write); such a value is "known" from then on. */
#ifndef EW_GRAPH_GRAPH_H
#define EW_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "graph/op.h"
#include "graph/tensor.h"

enum ew_value_kind {
    EW_VALUE_ACT,   /* output of a node */
    EW_VALUE_INPUT, /* written by the caller before each run */
    EW_VALUE_CONST, /* constant */
    EW_VALUE_PARAM, /* trainable; data NULL until loaded or initialised */
    EW_VALUE_STATE  /* updated by an operator, not by gradients: running statistics */
};

struct ew_value {
    const char *name; /* unique in the graph, never NULL */
    enum ew_value_kind kind;
    struct ew_tensor t; /* data: of CONST, PARAM, STATE, and of a known ACT; else NULL */
    int producer;       /* node, or -1 */
    uint32_t dynamic;   /* INPUT: bit i: dimension i is dynamic (bit 0: the batch) */
    bool frozen;        /* PARAM: not trained */
    bool literal;       /* CONST: a number in the network's code rather than one of its weights */
    bool channels_last; /* INPUT: an image [N, H, W, C], which an ONNX file gets as [N, C, H, W] */
};

/* Parameters, running statistics, constants. */
static inline bool ew_value_is_weight(const struct ew_value *v)
{
    return v->kind != EW_VALUE_ACT && v->kind != EW_VALUE_INPUT;
}

/* Known before any run: weights, and activations that inference has evaluated. */
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
    int *out;            /* values; -1: output that is not wanted */
    bool channels_first; /* a SPATIAL operator in ONNX's layout, on import or export; such a node
                          * can be inferred, not run */
};

/* A key-value annotation of the network, kept in files; see notes.c. */
struct ew_note {
    const char *key, *value;
    struct ew_note *next;
};

struct ew_graph {
    struct ew_arena arena; /* names, attributes, lists, constants */
    struct ew_arena known; /* data of values evaluated by the last inference */
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
    struct ew_note *notes;      /* in insertion order */
    struct ew_rewrite *rewrite; /* between rewrite_begin and rewrite_end, else NULL */
    bool inferred;              /* shapes are up to date with the inputs' shapes */
};

ew_err ew_graph_new(const char *name, struct ew_graph **out);
/* Freed with the public ew_graph_free(). */
ew_err ew_graph_clone(const struct ew_graph *g,
                      struct ew_graph **out); /* borrows constants' data */

/* Notes: key and text are copied; setting a key again replaces its text.  NULL: no such note. */
const char *ew_graph_note(const struct ew_graph *g, const char *key);
ew_err ew_graph_note_set(struct ew_graph *g, const char *key, const char *value);
ew_err ew_graph_notes_copy(const struct ew_graph *from, struct ew_graph *to);

/* Each returns the number of the new value in *out.  Names are copied; NULL gets a generated name,
 * a taken one a suffix. */
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

/* Adds a node with one new value, *out.  `attr` is copied (NULL: defaults); a NULL name is
 * generated.  Checks the number of inputs, and infers the node at once if the shapes of its inputs
 * are known, so that a builder's mistake fails where it was made. */
ew_err ew_graph_add(struct ew_graph *g, const struct ew_op *op, const char *name, const void *attr,
                    struct ew_inputs in, int *out);
/* The same for any number of outputs: out[i] gets the n_out new values.  Of `n`, op, name, attr,
 * in, n_in, n_out and channels_first are read. */
ew_err ew_graph_add_node(struct ew_graph *g, const struct ew_node *n, int *out);
ew_err ew_graph_output(struct ew_graph *g, int value);
/* Renames a value; a taken name gets a suffix. */
ew_err ew_graph_rename(struct ew_graph *g, int value, const char *name);
/* The same, but takes the name from another value that has it, unless that is an input. */
ew_err ew_graph_claim_name(struct ew_graph *g, int value, const char *name);

/* Turns an input into a constant (for inputs that shapes depend on); the data is copied. */
ew_err ew_graph_bind(struct ew_graph *g, int value, const struct ew_tensor *t);
/* Sets dimension 0 of every input whose batch is dynamic, and infers. */
ew_err ew_graph_set_batch(struct ew_graph *g, int64_t batch);
/* The same, where every run gets so many images: fails if the batch is another and fixed. */
ew_err ew_graph_need_batch(struct ew_graph *g, int64_t batch);
/* The batch of the inputs whose batch is dynamic; fails if they differ.  1 if there is none. */
ew_err ew_graph_batch(const struct ew_graph *g, int64_t *out);
/* Images of one run: the batch, or dimension 0 of the first input if no batch is dynamic. */
int64_t ew_graph_images(const struct ew_graph *g);

/* Infers type, shape and known data of every value from the inputs' shapes. */
ew_err ew_graph_infer(struct ew_graph *g);
/* Infers one node, whose inputs must have been inferred. */
ew_err ew_graph_infer_node(struct ew_graph *g, int node);
/* Checks the invariants: topological order, value numbers, numbers of inputs. */
ew_err ew_graph_check(const struct ew_graph *g);
/* Constant folding: values that inference has evaluated from constants alone, independent of the
 * inputs' shapes, become CONST; the nodes that made them are left to the sweep. */
ew_err ew_graph_keep_known(struct ew_graph *g);
/* Turns float constants in param_in and state_in slots into PARAM and STATE, except literals, lone
 * numbers (as 0.5 in x * 0.5), those from which a weight is computed, and those from which a shape,
 * axes and the like are computed: these must stay known.  If all matrices and filters are literals,
 * the others count as weights too. */
ew_err ew_graph_mark_params(struct ew_graph *g);
/* Dead code elimination: removes nodes that no output depends on, and unused values. */
ew_err ew_graph_sweep(struct ew_graph *g);

/* Fills a node's call for infer, cost and tests: in[] and out[] point into g->values.  `slots` must
 * hold n_in + n_out pointers. */
void ew_graph_call(const struct ew_graph *g, const struct ew_node *n, struct ew_tensor **slots,
                   struct ew_call *out);

/* Converts the graph between ONNX's layout (every SPATIAL node channels_first) and channels-last,
 * in which it runs: transposes are inserted around SPATIAL nodes, propagated through operators that
 * allow it, and cancelled.  Inputs and outputs keep their layout.  Values are renumbered.  After a
 * failure the graph can only be freed. */
ew_err ew_graph_channels_last(struct ew_graph *g);
ew_err ew_graph_channels_first(struct ew_graph *g);

/* Replaces `node` by the nodes from `first` on, which were added last: uses of its output i become
 * uses of out[i], which takes over the name. */
ew_err ew_graph_splice(struct ew_graph *g, int node, int first, const int *out);
/* A rewrite batches splices: each then costs only what it adds and rewires, not the length of the
 * graph.  Until the end nodes keep their numbers, the new ones are not moved into place and cannot
 * be replaced themselves.  During a rewrite nodes are rewired only through ew_graph_readers. */
ew_err ew_graph_rewrite_begin(struct ew_graph *g);
ew_err ew_graph_rewrite_end(struct ew_graph *g);
/* The uses of each value, kept up to date during a rewrite; NULL outside of one. */
struct ew_readers *ew_graph_readers(const struct ew_graph *g);
/* For the exporter: expands every node whose operator has an onnx.expand hook into standard nodes.
 */
ew_err ew_graph_expand(struct ew_graph *g);
/* For the importer, before the conversion to channels-last: replaces Reshape-Transpose-Reshape
 * chains that shuffle channels by one channel_shuffle node, which any layout can have. */
ew_err ew_graph_find_shuffles(struct ew_graph *g);

/* The value called `name`, or -1 if there is none. */
int ew_graph_find(const struct ew_graph *g, const char *name);

/* The node that makes `value` (-1: none), if it is of this operator; else -1. */
int ew_graph_producer(const struct ew_graph *g, int value, const struct ew_op *op);

/* uses[v] += number of node inputs and graph outputs that read value v. */
void ew_graph_count_uses(const struct ew_graph *g, int *uses);

/* Cost of one node at the present shapes, without `params`, since nodes may share parameters. */
void ew_graph_node_cost(const struct ew_graph *g, int node, struct ew_cost *out);
/* Cost of the whole graph, and of each node if `each` is not NULL.  A shared parameter counts for
 * the first node that reads it. */
ew_err ew_graph_cost(const struct ew_graph *g, struct ew_cost *total, struct ew_cost *each);

/* Allocates and zeroes the data of every PARAM and STATE that has none. */
ew_err ew_graph_alloc_weights(struct ew_graph *g);

#endif
