/* SPDX-License-Identifier: Apache-2.0 */
/* Sliding-window inference: a graph that computes only what is new in overlapping windows of a
 * clip.
 *
 * When a window of T frames advances by `hop`, most of what a layer computes is unchanged: a time
 * position whose receptive field contains frames and no padding depends on those frames alone, not
 * on where the window begins.  Such positions are reused from earlier windows; the others, at both
 * ends of the window, are computed.  In the step graph a value of T positions is replaced by its
 * new ones, [0, lo) and [hi, T), concatenated; where a layer reads more of a value than that, the
 * rest is an input (a band).  Layers without time structure (the pools and dense layers at a
 * network's end) read whole values, and run unchanged. */
#ifndef EW_COMPRESS_SLIDE_GRAPH_H
#define EW_COMPRESS_SLIDE_GRAPH_H

#include "graph/graph.h"

/* A value whose positions are kept from window to window: position t of the window that begins at
 * frame s belongs to frame s + t * step. */
struct ew_slide_kept {
    int64_t frames, step; /* number of positions, and frames of the clip per position */
    int64_t unit;         /* in frames: divides `step` and the starts of windows */
    int64_t lo, hi;       /* new positions are [0, lo) and [hi, frames) */
    int64_t end;          /* positions [lo, end) see no padding */
    int axis;             /* time axis */
    int full, part;       /* output numbers: whole value in `full`, new positions in `step` */
};

/* Positions [first, first + count) of a kept value, as an input of `step`. */
struct ew_slide_band {
    int kept, input;
    int64_t first, count;
};

struct ew_slide_graph {
    struct ew_arena arena;
    struct ew_graph *full; /* the network, with kept values as additional outputs */
    struct ew_graph *step; /* input 0: the last `hop` frames of the window */
    int64_t frames, hop;
    int axis; /* time axis of the input */
    struct ew_slide_kept *kept;
    struct ew_slide_band *bands;
    int n_kept, n_bands;
};

/* For a network with one input, a clip.  Borrows its constants.  out->step is NULL if no layer can
 * reuse anything. */
ew_err ew_slide_graph_new(const struct ew_graph *g, int64_t hop, bool optimize,
                          struct ew_slide_graph *out);
void ew_slide_graph_free(struct ew_slide_graph *s);

#endif
