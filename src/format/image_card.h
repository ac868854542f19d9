/* SPDX-License-Identifier: Apache-2.0 */
/* How a network's images are made and what its classes are called.  It travels as notes of the
 * graph, which checkpoints fill in and ONNX files keep among their metadata:
 *
 *   edgewise.mean, edgewise.std    "0.5,0.5,0.5", of pixels in [0, 1], by channel
 *   edgewise.resize                the shorter side before the centre is cropped, or "cover"
 *   edgewise.classes               names, one a line
 *   edgewise.weights               "random" where nobody has trained them, else "trained" */
#ifndef EW_FORMAT_IMAGE_CARD_H
#define EW_FORMAT_IMAGE_CARD_H

#include "data/preprocess.h"
#include "graph/graph.h"

struct ew_image_card {
    struct ew_preprocess prep;
    const char *const *classes;
    int n_classes;
    bool random; /* weights that nobody has trained */
};

/* Notes whether the graph's weights are random. */
ew_err ew_image_card_random(struct ew_graph *g, bool random);

/* Notes all that is known; what is not stays as it was. */
ew_err ew_image_card_put(struct ew_graph *g, const struct ew_image_card *c);

/* What the notes say; names lie in the arena.  Fails where a note makes no sense. */
ew_err ew_image_card_get(const struct ew_graph *g, struct ew_arena *a, struct ew_image_card *out);

#endif
