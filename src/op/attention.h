/* SPDX-License-Identifier: Apache-2.0 */
/* Import of ONNX's and ONNX Runtime's attention nodes as standard nodes. */
#ifndef EW_OP_ATTENTION_H
#define EW_OP_ATTENTION_H

#include "graph/onnx.h"

/* Imports Attention of opset 23, and Attention and MultiHeadAttention of com.microsoft, as in
 * vision transformers: without KV cache, with a key mask (1: visible) or a bias of the scores. */
ew_err ew_attention_import(struct ew_graph *g, const struct ew_onnx_node *n, int *out);

#endif
