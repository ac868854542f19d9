/* SPDX-License-Identifier: Apache-2.0 */
/* A network's weights as one vector: trainable parameters first, then running statistics. */
#ifndef EW_FEDERATE_WEIGHTS_H
#define EW_FEDERATE_WEIGHTS_H

#include "graph/graph.h"

struct ew_weights {
    struct ew_graph *g; /* borrowed */
    int *values, n;
    int64_t size, learning; /* numbers; those of parameters, which come first */
};

ew_err ew_weights_open(struct ew_graph *g, struct ew_weights *out);
void ew_weights_close(struct ew_weights *w);

void ew_weights_read(const struct ew_weights *w, float *to);
void ew_weights_write(const struct ew_weights *w, const float *from);

#endif
