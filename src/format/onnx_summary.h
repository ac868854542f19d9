/* SPDX-License-Identifier: Apache-2.0 */
/* What an ONNX file says of itself, and which of its operators are not supported: all of them, with
 * where they are, before anything is imported. */
#ifndef EW_FORMAT_ONNX_SUMMARY_H
#define EW_FORMAT_ONNX_SUMMARY_H

#include "base/mem.h"

struct ew_onnx_port {
    const char *name, *type; /* "float32" */
    const char *shape;       /* "N x 3 x 224 x 224"; "?" where the file does not say */
};

struct ew_onnx_lack {
    const char *op;    /* "MyOp", with its domain where that is not ONNX's */
    const char *first; /* the first node of that kind */
    int64_t count;
};

struct ew_onnx_summary {
    const char *producer; /* "pytorch 2.1.0"; "" where the file does not say */
    const char *opsets;   /* "13, com.microsoft 1" */
    int64_t ir, nodes, functions, initializers;
    const struct ew_onnx_port *inputs, *outputs; /* inputs that are not constants */
    int n_inputs, n_outputs;
    const struct ew_onnx_lack *lacks; /* kinds of operators that are not supported */
    int n_lacks;
};

/* Reads the file's messages, not its external data.  Everything lies in the arena. */
ew_err ew_onnx_summarise(const char *path, struct ew_arena *a, struct ew_onnx_summary *out);

#endif
