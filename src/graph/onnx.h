/* SPDX-License-Identifier: Apache-2.0 */
/* An ONNX node as a plain C struct, between the file format (format/onnx_*.c, protobuf) and the
 * operators' import and export hooks.  No protobuf type is visible outside format/. */
#ifndef EW_GRAPH_ONNX_H
#define EW_GRAPH_ONNX_H

#include "graph/graph.h"

enum ew_onnx_attr_type {
    EW_ONNX_INT,
    EW_ONNX_FLOAT,
    EW_ONNX_STRING,
    EW_ONNX_INTS,
    EW_ONNX_FLOATS,
    EW_ONNX_TENSOR,
    EW_ONNX_OTHER /* graphs, sparse tensors, strings: not supported */
};

struct ew_onnx_attr {
    const char *name;
    enum ew_onnx_attr_type type;
    int64_t i;
    float f;
    const char *s;
    int64_t n; /* length of ints or floats */
    const int64_t *ints;
    const float *floats;
    struct ew_tensor tensor;
};

#define EW_ONNX_MAX_ATTRS  24
#define EW_ONNX_MAX_CONSTS 6

struct ew_onnx_node {
    const char *type, *domain, *name;
    int opset; /* import: of the node's domain; export: of the file (a hook may raise it, and all
                * nodes are then exported again at the new opset) */
    int n_in, n_out;     /* an export hook may raise n_out where ONNX requires more outputs */
    const int *in;       /* values, -1 absent */
    const int *out_used; /* import: 0 if the output is not named, so not wanted */
    /* export: constant inputs that are no values of the graph (ew_onnx_set_input) */
    struct ew_onnx_const {
        int slot;
        struct ew_tensor t;
    } consts[EW_ONNX_MAX_CONSTS];
    int n_consts;
    struct ew_arena *arena; /* export: owns what the setters copy */
    struct ew_onnx_attr attrs[EW_ONNX_MAX_ATTRS];
    int n_attrs;
};

/* ---- For import hooks ---- */

/* The attribute, or NULL. */
const struct ew_onnx_attr *ew_onnx_attr(const struct ew_onnx_node *n, const char *name);
int64_t ew_onnx_int(const struct ew_onnx_node *n, const char *name, int64_t def);
double ew_onnx_float(const struct ew_onnx_node *n, const char *name, double def);
const char *ew_onnx_str(const struct ew_onnx_node *n, const char *name, const char *def);

/* Fills the operator's attribute struct from the node's attributes, by the field table and renames.
 * An ONNX attribute without a field is an error, unless `ignore` (NULL-terminated) lists it. */
ew_err ew_onnx_fill(const struct ew_op *op, const struct ew_onnx_node *n, const char *const *ignore,
                    void *attr);

/* in[slot]; if it is absent but the node has it as an attribute (older opsets), a constant made
 * from that; else -1. */
ew_err ew_onnx_input_or_attr(struct ew_graph *g, const struct ew_onnx_node *n, int slot,
                             const char *attr, int *out);

/* Adds a scalar constant, for hooks that expand a node into several. */
ew_err ew_onnx_scalar(struct ew_graph *g, enum ew_dtype dtype, double v, int *out);

/* A copy of the node with other inputs. */
static inline struct ew_onnx_node ew_onnx_with_inputs(const struct ew_onnx_node *n, const int *in,
                                                      int n_in)
{
    struct ew_onnx_node own = *n;
    own.in = in;
    own.n_in = n_in;
    return own;
}

/* The generic import: one node (channels_first if SPATIAL) with `attr`, or with ew_onnx_fill's if
 * attr is NULL.  Hooks call it after preparing attr. */
ew_err ew_onnx_import_default(struct ew_graph *g, const struct ew_op *op,
                              const struct ew_onnx_node *n, const void *attr, int *out);

/* ---- For export hooks ---- */

/* Adds or replaces an attribute. */
ew_err ew_onnx_set_int(struct ew_onnx_node *n, const char *name, int64_t v);
ew_err ew_onnx_set_str(struct ew_onnx_node *n, const char *name, const char *v);
ew_err ew_onnx_set_ints(struct ew_onnx_node *n, const char *name, const int64_t *v, int count);
ew_err ew_onnx_set_tensor(struct ew_onnx_node *n, const char *name, const struct ew_tensor *v);
void ew_onnx_drop(struct ew_onnx_node *n, const char *name);

/* Gives the node a constant as input `slot`, for fields that are inputs in opset 13 (Clip's bounds,
 * axes); slots in between stay absent.  The data is copied. */
ew_err ew_onnx_set_input(struct ew_onnx_node *n, int slot, const struct ew_tensor *t);
ew_err ew_onnx_set_input_ints(struct ew_onnx_node *n, int slot, const int64_t *v, int count);
/* The export hook of Add, Sub, Mul and Div, which have 8- and 16-bit integers since opset 14. */
ew_err ew_onnx_export_arithmetic(const struct ew_graph *g, int node, struct ew_onnx_node *n);

/* ---- For the file format ---- */

/* Imports a node by the operator's hook, or generically. */
ew_err ew_onnx_import(struct ew_graph *g, const struct ew_op *op, const struct ew_onnx_node *n,
                      int *out);
/* Fills n as the file will have it: type, attributes by the field table and renames, then the
 * operator's export hook.  n->opset and n->arena are set by the caller. */
ew_err ew_onnx_export(const struct ew_graph *g, int node, struct ew_onnx_node *n);

#endif
