/* SPDX-License-Identifier: Apache-2.0 */
/* The ONNX importer's own interface. */
#ifndef EW_FORMAT_ONNX_IMPORT_H
#define EW_FORMAT_ONNX_IMPORT_H

#include "format/onnx_file.h"
#include "format/onnx_topology.h"
#include "graph/graph.h"
#include "graph/onnx.h"

/* State shared by the import of a file and of the bodies in it (functions, branches, loops). */
struct ew_onnx_shared {
    struct ew_names functions; /* "domain:name": index in the model */
    int64_t nodes_left;        /* budget of nodes that bodies may add */
    int64_t bytes_left;        /* budget of bytes of bodies to unpack */
    int64_t inferred;          /* nodes inferred for conditions at other batches */
};

/* A value that the file names and the operator here does not compute: nothing may read it. */
#define EW_ONNX_NOT_COMPUTED (-2)

/* An import in progress, of the file's graph or of a body. */
struct ew_onnx_import {
    struct ew_onnx_file *file;
    struct ew_onnx_shared *shared;
    const Ew__OnnxModel *model;
    const Ew__OnnxGraph *graph; /* the model's, or the body's */
    Ew__OnnxOpset *const *opsets;
    size_t n_opsets;
    const struct ew_onnx_import *outer; /* of a branch or loop: the enclosing scope */
    const struct ew_onnx_node *call;    /* within a function: the node that calls it */
    const Ew__OnnxFunction *function;
    int depth;
    const struct ew_onnx_opts *opts;
    struct ew_onnx_topology topology;
    struct ew_graph *g;
    const struct ew_op **op; /* by node; NULL: a body is inlined in its place */
    int *value;              /* by value of the topology: value of g, -1 or EW_ONNX_NOT_COMPUTED */
    bool *needed;            /* by value of the topology: some shape depends on its data */
};

/* Fails if the default domain's opset is too new. */
ew_err ew_onnx_check_opset(Ew__OnnxOpset *const *list, size_t n);

/* Sets up the topology, the operators and the value table of im->graph. */
ew_err ew_onnx_begin(struct ew_onnx_import *im);
ew_err ew_onnx_add_constants(struct ew_onnx_import *im);

/* Finds the operator of each node; the error names the first unsupported one. */
ew_err ew_onnx_find_ops(struct ew_onnx_import *im);

/* Whether a known value may be another one at another batch (onnx_varies.c). */
ew_err ew_onnx_varies(struct ew_onnx_import *im, int value, bool *out);

/* Upgrades a node of an opset before 7 to opset 7; `in` are its inputs. */
ew_err ew_onnx_upgrade(struct ew_onnx_import *im, struct ew_onnx_node *n, int *in);

/* For operators without half-precision support: casts inputs to float32 (*was gets their type), and
 * outputs back. */
ew_err ew_onnx_widen(struct ew_graph *g, const struct ew_op *op, int *in, int n_in,
                     enum ew_dtype *was);
ew_err ew_onnx_narrow(struct ew_graph *g, enum ew_dtype was, int *out, int n_out);

/* Adds node k of the file to the graph. */
ew_err ew_onnx_import_node(struct ew_onnx_import *im, int node);

/* Before the conversion to channels-last: Reshape-InstanceNormalization-Reshape chains become
 * group_norm nodes (onnx_group_norm.c). */
ew_err ew_onnx_find_group_norms(struct ew_graph *g);

/* ---- Bodies (onnx_body.c) ---- */

/* Registers the model's functions in im->shared. */
ew_err ew_onnx_find_functions(struct ew_onnx_import *im);
/* True for a function call, a branch or a loop. */
bool ew_onnx_is_call(const struct ew_onnx_import *im, const Ew__OnnxNode *n);
/* Mask of the inputs that must be known, like ew_op.known_in. */
unsigned ew_onnx_call_known(const struct ew_onnx_import *im, int node);
/* Inlines the body of such a node; n has its inputs and attributes. */
ew_err ew_onnx_import_call(struct ew_onnx_import *im, const Ew__OnnxNode *from,
                           const struct ew_onnx_node *n, int *out);

/* ew_onnx_load from memory; `name` is for messages. */
ew_err ew_onnx_parse(const void *bytes, size_t size, const char *name,
                     const struct ew_onnx_opts *opts, struct ew_graph **out);

#endif
