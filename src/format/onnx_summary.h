/* SPDX-License-Identifier: Apache-2.0 */
/* Summary of an ONNX file, with a list of all unsupported operators, without importing it. */
#ifndef EW_FORMAT_ONNX_SUMMARY_H
#define EW_FORMAT_ONNX_SUMMARY_H

#include "base/mem.h"

struct ew_onnx_port {
    const char *name, *type; /* "float32" */
    const char *shape;       /* "N x 3 x 224 x 224"; "?": unknown */
};

struct ew_onnx_unsupported_op {
    const char *op;    /* "MyOp", with its domain if not ONNX's */
    const char *first; /* the first such node */
    int64_t count;
};

struct ew_onnx_summary {
    const char *producer; /* "pytorch 2.1.0"; "": unknown */
    const char *opsets;   /* "13, com.microsoft 1" */
    int64_t ir, nodes, functions, initializers;
    const struct ew_onnx_port *inputs, *outputs; /* inputs without initializers */
    int n_inputs, n_outputs;
    const struct ew_onnx_unsupported_op *unsupported; /* unsupported operators */
    int n_unsupported;
};

/* Reads the file, not its external data.  The arena owns the result. */
ew_err ew_onnx_summarise(const char *path, struct ew_arena *a, struct ew_onnx_summary *out);

#endif
