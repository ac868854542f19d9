/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the ONNX importer share. */
#ifndef EW_FORMAT_ONNX_IMPORT_H
#define EW_FORMAT_ONNX_IMPORT_H

#include "format/onnx_file.h"
#include "format/onnx_wire.h"
#include "graph/graph.h"
#include "graph/onnx.h"

/* An import in progress. */
struct ew_onnx_import {
    struct ew_onnx_file file;
    const Ew__OnnxModel *model;
    const struct ew_onnx_opts *opts;
    struct ew_onnx_wire wire;
    struct ew_graph *g;
    const struct ew_op **op; /* by node of the file */
    int *value;              /* by value of the wiring: value of g, or -1 */
    bool *needed;            /* by value of the wiring: some shape depends on what it holds */
};

/* The opset of a domain; fails where the file does not say. */
ew_err ew_onnx_opset(const Ew__OnnxModel *m, const char *domain, int *out);

/* Finds the operator of each node; the error names the first that is missing. */
ew_err ew_onnx_find_ops(struct ew_onnx_import *im);

/* Puts a node of an opset before 7 in the words of opset 7; `in` is its list of inputs. */
ew_err ew_onnx_upgrade(struct ew_onnx_import *im, struct ew_onnx_node *n, int *in);

/* Adds node k of the file to the graph. */
ew_err ew_onnx_import_node(struct ew_onnx_import *im, int node);

/* The same as ew_onnx_load from bytes; `name` is for messages. */
ew_err ew_onnx_parse(const void *bytes, size_t size, const char *name,
                     const struct ew_onnx_opts *opts, struct ew_graph **out);

#endif
