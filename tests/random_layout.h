/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs in the layouts of model files: channels first, one to five dimensions, any axis,
 * quantised values that pass through data movement, filters shared between layers, several uses and
 * outputs of all kinds.
 *
 * Every graph is made twice.  `file` has gone through the importer's passes: its transposes were
 * moved, merged and cancelled.  `plain` has a transpose before and after each layout-dependent node
 * and no passes; its results by the references are the expected results of `file`. */
#ifndef EW_RANDOM_LAYOUT_H
#define EW_RANDOM_LAYOUT_H

#include "graph/graph.h"

struct ew_random_layout {
    uint64_t seed;
    int nodes;      /* approximate limit; 0: 1 to 24, depending on the seed */
    bool any_batch; /* nothing that fixes the batch size: both graphs run with any */
    bool trainable; /* differentiable operators only, and one output [N, classes]; needs
                     * any_batch */
};

ew_err ew_random_layout(const struct ew_random_layout *o, struct ew_graph **file,
                        struct ew_graph **plain);

#endif
