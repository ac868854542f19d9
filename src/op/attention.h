/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX Runtime's attention nodes as plain ones. */
#ifndef EW_OP_ATTENTION_H
#define EW_OP_ATTENTION_H

#include "graph/onnx.h"

/* Attention and MultiHeadAttention of com.microsoft, as tools write them into vision transformers:
 * without state of earlier tokens, with a mask of keys (1: seen) or a bias of the scores. */
ew_err ew_attention_import(struct ew_graph *g, const struct ew_onnx_node *n, int *out);

#endif
