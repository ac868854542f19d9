/* SPDX-License-Identifier: Apache-2.0 */
/* The drawing of a graph: boxes and edges (graph_boxes.c), their places (graph_place.c), SVG
 * (graph_svg.c). */
#ifndef EW_REPORT_GRAPH_BOXES_H
#define EW_REPORT_GRAPH_BOXES_H

#include <stdio.h>

#include "graph/graph.h"

/* Kind of a box's contents, which decides its colour. */
enum ew_box_kind {
    EW_BOX_END,    /* an input or output of the graph */
    EW_BOX_FILTER, /* spatial, with weights */
    EW_BOX_DENSE,  /* weights */
    EW_BOX_POOL,   /* spatial, without weights */
    EW_BOX_JOIN,   /* several inputs */
    EW_BOX_OTHER
};

struct ew_box {
    enum ew_box_kind kind;
    const char *title;         /* "conv 3x3/2, 64, bn, relu" */
    const char *name;          /* of its first node */
    char shape[EW_SHAPE_TEXT]; /* of its output */
    int layer;                 /* boxes on the longest path to it */
    int height;                /* boxes on the longest path from it */
    int main_pred, main_succ;  /* straight above and below it, or -1 */
    int x, page;               /* centre; graph_place.c's */
};

/* From one box to another.  A long one runs down a track of its own in the layers between. */
struct ew_edge {
    int from, to;
    int track; /* x of the track; graph_place.c's */
};

struct ew_page {
    int first, last; /* layers */
    int left, right; /* extent of what is in it */
    int again;       /* last box of the page before, repeated above this page; -1: none */
};

#define EW_MAX_PAGES 64

struct ew_drawing {
    struct ew_arena arena; /* texts */
    struct ew_box *boxes;
    int n_boxes, cap_boxes;
    struct ew_edge *edges; /* ordered by `to` */
    int n_edges, cap_edges;
    int *node_box; /* by node of the graph: the box that it is drawn in; -1: none */
    int n_layers;
    int box_width;
    struct ew_page pages[EW_MAX_PAGES];
    int n_pages;
};

#define EW_BOX_HEIGHT  36
#define EW_LAYER_PITCH 58
#define EW_TRACK_GAP   16 /* between a track and its neighbours */

void ew_drawing_fini(struct ew_drawing *d);
/* Boxes, edges and layers; `d` is zeroed by it. */
ew_err ew_drawing_boxes(const struct ew_graph *g, struct ew_drawing *d);
/* Columns, tracks and pages. */
ew_err ew_drawing_place(struct ew_drawing *d);
/* Both steps; call fini even if it fails. */
ew_err ew_drawing_make(const struct ew_graph *g, struct ew_drawing *d);
/* As an SVG element; `numbered` boxes have their number as data-i. */
ew_err ew_drawing_svg(const struct ew_graph *g, const struct ew_drawing *d, bool numbered,
                      FILE *out);

static inline bool ew_edge_is_long(const struct ew_drawing *d, const struct ew_edge *e)
{
    return d->boxes[e->to].layer - d->boxes[e->from].layer > 1;
}

#endif
