/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs as files have them: channels first, one to five dimensions, any axis, quantised
 * values that are moved about, filters that layers share, several readers and outputs of all kinds.
 *
 * Every graph is made twice.  `file` has gone through what an imported file goes through: its
 * transposes were pushed, merged and cancelled.  `plain` has one transpose before and one after
 * each node that looks at channels, and nothing has been done to it: by the references it gives the
 * results that `file` must give in every way. */
#ifndef EW_RANDOM_LAYOUT_H
#define EW_RANDOM_LAYOUT_H

#include "graph/graph.h"

struct ew_random_layout {
    uint64_t seed;
    int nodes;      /* at most about so many; 0: 1 to 24 by the seed */
    bool any_batch; /* nothing that fixes the batch: both graphs run with any */
    bool trainable; /* nothing but what has a gradient, and one output [N, classes]; any_batch */
};

ew_err ew_random_layout(const struct ew_random_layout *o, struct ew_graph **file,
                        struct ew_graph **plain);

#endif
