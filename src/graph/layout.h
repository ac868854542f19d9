/* SPDX-License-Identifier: Apache-2.0 */
/* What layout.c and the transpose operator share. */
#ifndef EW_GRAPH_LAYOUT_H
#define EW_GRAPH_LAYOUT_H

#include "graph/graph.h"

struct ew_transpose_attr {
    struct ew_ints perm; /* axis i of the output is axis perm[i] of the input; empty: reversed */
};

/* Writes in's elements in permuted order to out->data (shape is set; data may be NULL on both). */
void ew_tensor_permute(const struct ew_tensor *in, const int *perm, struct ew_tensor *out);

#endif
