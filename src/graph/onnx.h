/* SPDX-License-Identifier: Apache-2.0 */
/* An ONNX node in plain C, between the file format (format/onnx_*.c, protobuf) and the operators'
 * import and export hooks.  No protobuf type is seen outside format/. */
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
    EW_ONNX_OTHER /* graphs, sparse tensors, strings: present but not readable */
};

struct ew_onnx_attr {
    const char *name;
    enum ew_onnx_attr_type type;
    int64_t i;
    float f;
    const char *s;
    int64_t n; /* of ints or floats */
    const int64_t *ints;
    const float *floats;
    struct ew_tensor tensor;
};

#define EW_ONNX_MAX_ATTRS  24
#define EW_ONNX_MAX_CONSTS 6

struct ew_onnx_node {
    const char *type, *domain, *name;
    int opset; /* import: of the node's domain; export: of the file (a hook may raise it, then all
                * nodes are exported again for that) */
    int n_in, n_out;     /* an export hook may raise n_out where ONNX demands an output we lack */
    const int *in;       /* values, -1 absent */
    const int *out_used; /* import: 0 where the output has no name */
    /* export: inputs that the graph does not have as values (ew_onnx_set_input) */
    struct ew_onnx_const {
        int slot;
        struct ew_tensor t;
    } consts[EW_ONNX_MAX_CONSTS];
    int n_consts;
    struct ew_arena *arena; /* export: holds what the setters copy */
    struct ew_onnx_attr attrs[EW_ONNX_MAX_ATTRS];
    int n_attrs;
};

/* ---- For import hooks ---- */

/* The attribute, or NULL. */
const struct ew_onnx_attr *ew_onnx_attr(const struct ew_onnx_node *n, const char *name);
int64_t ew_onnx_int(const struct ew_onnx_node *n, const char *name, int64_t def);
double ew_onnx_float(const struct ew_onnx_node *n, const char *name, double def);
const char *ew_onnx_str(const struct ew_onnx_node *n, const char *name, const char *def);

/* Fills the operator's attribute struct from the node's attributes by the field table and renames;
 * an ONNX attribute that the table does not know is an error unless `ignore` (NULL-terminated)
 * lists it. */
ew_err ew_onnx_fill(const struct ew_op *op, const struct ew_onnx_node *n, const char *const *ignore,
                    void *attr);

/* in[slot], or, where the node gives it as an attribute (older opsets), a constant made from it;
 * -1 when there is neither. */
ew_err ew_onnx_input_or_attr(struct ew_graph *g, const struct ew_onnx_node *n, int slot,
                             const char *attr, int *out);

/* A scalar constant, for hooks that make several nodes of one. */
ew_err ew_onnx_scalar(struct ew_graph *g, enum ew_dtype dtype, double v, int *out);

/* The node with other inputs, for hooks that have made some. */
static inline struct ew_onnx_node ew_onnx_with_inputs(const struct ew_onnx_node *n, const int *in,
                                                      int n_in)
{
    struct ew_onnx_node own = *n;
    own.in = in;
    own.n_in = n_in;
    return own;
}

/* The generic import: ew_onnx_fill where attr is NULL, then one node (channels_first where
 * SPATIAL). Hooks call it after preparing attr. */
ew_err ew_onnx_import_default(struct ew_graph *g, const struct ew_op *op,
                              const struct ew_onnx_node *n, const void *attr, int *out);

/* ---- For export hooks ---- */

/* Adds or replaces an attribute. */
ew_err ew_onnx_set_int(struct ew_onnx_node *n, const char *name, int64_t v);
ew_err ew_onnx_set_str(struct ew_onnx_node *n, const char *name, const char *v);
ew_err ew_onnx_set_ints(struct ew_onnx_node *n, const char *name, const int64_t *v, int count);
ew_err ew_onnx_set_tensor(struct ew_onnx_node *n, const char *name, const struct ew_tensor *v);
void ew_onnx_drop(struct ew_onnx_node *n, const char *name);

/* Gives the node a constant as its input `slot` (attributes of ours that opset 13 has as inputs:
 * Clip's bounds, axes); slots between stay absent.  The data is copied. */
ew_err ew_onnx_set_input(struct ew_onnx_node *n, int slot, const struct ew_tensor *t);
ew_err ew_onnx_set_input_ints(struct ew_onnx_node *n, int slot, const int64_t *v, int count);
/* An export hook: 8- and 16-bit integers came to Add, Sub, Mul and Div with opset 14. */
ew_err ew_onnx_export_arithmetic(const struct ew_graph *g, int node, struct ew_onnx_node *n);

/* ---- For the file format ---- */

/* The node through the operator's own hook, or the generic import where it fits. */
ew_err ew_onnx_import(struct ew_graph *g, const struct ew_op *op, const struct ew_onnx_node *n,
                      int *out);
/* The node as the file will have it: type, attributes by the field table and renames, then the
 * operator's own hook.  n has opset and arena set. */
ew_err ew_onnx_export(const struct ew_graph *g, int node, struct ew_onnx_node *n);

#endif
