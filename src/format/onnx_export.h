/* SPDX-License-Identifier: Apache-2.0 */
/* An ONNX model to be written: made by onnx_export.c, written by onnx_write.c. */
#ifndef EW_FORMAT_ONNX_EXPORT_H
#define EW_FORMAT_ONNX_EXPORT_H

#include "format/onnx_file.h"
#include "graph/graph.h"

struct ew_onnx_out {
    struct ew_arena arena; /* messages, names */
    Ew__OnnxModel model;   /* without its graph */
    Ew__OnnxGraph graph;   /* without its initializers, which are: */
    struct ew_onnx_init {
        const char *name;
        struct ew_tensor t; /* data is borrowed */
    } * inits;
    int n_inits, cap_inits;
    bool replace; /* replace a symbolic link, as ew_file_out_replace */
};

/* Writes the model; tensors go to external data "<path>.data" if the file would exceed `limit`
 * bytes. */
ew_err ew_onnx_write(struct ew_onnx_out *o, const char *path, int64_t limit);

#endif
