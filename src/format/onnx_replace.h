/* SPDX-License-Identifier: Apache-2.0 */
/* Writing an ONNX file into a folder of the program's own. */
#ifndef EW_FORMAT_ONNX_REPLACE_H
#define EW_FORMAT_ONNX_REPLACE_H

#include "graph/graph.h"

/* As ew_onnx_save with its defaults, but a link in the place of the file is replaced, not followed.
 */
ew_err ew_onnx_replace(const struct ew_graph *g, const char *path);

#endif
