/* SPDX-License-Identifier: Apache-2.0 */
/* The image card: preprocessing and class names of a network, stored as notes of the graph, which
 * checkpoints write and ONNX files keep as metadata:
 *
 *   edgewise.mean, edgewise.std    "0.5,0.5,0.5", by channel, of pixels in [0, 1]
 *   edgewise.resize                the shorter side before the centre crop, or "cover"
 *   edgewise.classes               names, one a line
 *   edgewise.weights               "random" if untrained, else "trained" */
#ifndef EW_FORMAT_IMAGE_CARD_H
#define EW_FORMAT_IMAGE_CARD_H

#include "data/preprocess.h"
#include "graph/graph.h"

struct ew_image_card {
    struct ew_preprocess prep;
    const char *const *classes;
    int n_classes;
    bool random; /* untrained weights */
};

/* Sets the note edgewise.weights. */
ew_err ew_image_card_random(struct ew_graph *g, bool random);

/* Sets the notes of all fields that are known; leaves the others. */
ew_err ew_image_card_put(struct ew_graph *g, const struct ew_image_card *c);

/* Reads the card; names are in the arena.  Fails on a malformed note. */
ew_err ew_image_card_get(const struct ew_graph *g, struct ew_arena *a, struct ew_image_card *out);

#endif
