/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by layout.c and the transpose operator. */
#ifndef EW_GRAPH_LAYOUT_H
#define EW_GRAPH_LAYOUT_H

#include "graph/graph.h"

struct ew_transpose_attr {
    struct ew_ints perm; /* axis i of the output is axis perm[i] of the input; empty: reversed */
};

/* Transposes `in`: sets out->shape and, where in->data is not NULL, writes to out->data. */
void ew_tensor_permute(const struct ew_tensor *in, const int *perm, struct ew_tensor *out);

#endif
