/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by shuffle.c and the channel_shuffle operator. */
#ifndef EW_GRAPH_SHUFFLE_H
#define EW_GRAPH_SHUFFLE_H

#include "graph/graph.h"

struct ew_channel_shuffle_attr {
    int64_t groups; /* channel k * groups + i of the output is channel i * (C / groups) + k */
};

#endif
