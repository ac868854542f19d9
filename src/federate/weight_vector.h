/* SPDX-License-Identifier: Apache-2.0 */
/* A network's weights as one vector: trainable parameters first, then running statistics. */
#ifndef EW_FEDERATE_WEIGHT_VECTOR_H
#define EW_FEDERATE_WEIGHT_VECTOR_H

#include "graph/graph.h"

struct ew_weight_vector {
    struct ew_graph *g; /* borrowed */
    int *values, n;
    int64_t size, learning; /* numbers; those of parameters, which come first */
};

ew_err ew_weight_vector_open(struct ew_graph *g, struct ew_weight_vector *out);
void ew_weight_vector_close(struct ew_weight_vector *w);

void ew_weight_vector_read(const struct ew_weight_vector *w, float *to);
void ew_weight_vector_write(const struct ew_weight_vector *w, const float *from);

#endif
