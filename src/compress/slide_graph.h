/* SPDX-License-Identifier: Apache-2.0 */
/* A network over windows of a clip that overlap, as a graph that computes what is new alone.
 *
 * When a window of T frames moves on by `hop`, most of what a layer computes was there before: a
 * position in time whose taps see frames only, and no padding, depends on these frames and not on
 * where the window begins.  Such positions are taken from the windows before; others, at both ends
 * of the window, are computed.  The step graph has, in place of a value of T positions, its new
 * ones, those before `lo` and those from `hi` on, one after the other; where a layer reads more of
 * a value than that, what is missing is an input (a band).  Layers that see no time structure (the
 * pools and dense layers at a network's end) read whole values, and run as they are. */
#ifndef EW_COMPRESS_SLIDE_GRAPH_H
#define EW_COMPRESS_SLIDE_GRAPH_H

#include "graph/graph.h"

/* A value of the network whose positions are kept from window to window: position t of the window
 * that begins with frame s belongs to frame s + t * step. */
struct ew_slide_kept {
    int64_t frames, step; /* positions, and frames of the clip between them */
    int64_t unit;         /* of frames: divides the step and where windows begin */
    int64_t lo, hi;       /* new are [0, lo) and [hi, frames) */
    int64_t end;          /* positions [lo, end) see no padding */
    int axis;             /* of time */
    int full, part;       /* outputs: whole, of `full`; its new positions, of `step` */
};

/* Positions [first, first + count) of a kept value, as an input of `step`. */
struct ew_slide_band {
    int kept, input;
    int64_t first, count;
};

struct ew_slide_graph {
    struct ew_arena arena;
    struct ew_graph *full; /* the network, with kept values as further outputs */
    struct ew_graph *step; /* input 0: the window's last `hop` frames */
    int64_t frames, hop;
    int axis; /* of time, in the input */
    struct ew_slide_kept *kept;
    struct ew_slide_band *bands;
    int n_kept, n_bands;
};

/* Of a network with one input, a clip, and constants that outlive the result.  out->step is NULL
 * where no layer has anything to keep. */
ew_err ew_slide_graph_new(const struct ew_graph *g, int64_t hop, bool optimize,
                          struct ew_slide_graph *out);
void ew_slide_graph_free(struct ew_slide_graph *s);

#endif
