/* SPDX-License-Identifier: Apache-2.0 */
/* Writing an ONNX file into a run's folder. */
#ifndef EW_FORMAT_ONNX_REPLACE_H
#define EW_FORMAT_ONNX_REPLACE_H

#include "graph/graph.h"

/* ew_onnx_save with defaults, but a symbolic link at `path` is replaced, not followed. */
ew_err ew_onnx_replace(const struct ew_graph *g, const char *path);

#endif
