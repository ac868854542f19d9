/* SPDX-License-Identifier: Apache-2.0 */
/* Classifies video with three threads: one reads frames, the calling one keeps the last `window`
 * frames and runs the network every `hop`, one shows the predictions.
 *
 * For cameras, and with a frame rate, the oldest waiting frames are dropped and counted when
 * inference is late. */
#ifndef EW_MEASURE_VIDEO_STREAM_H
#define EW_MEASURE_VIDEO_STREAM_H

#include "bench/bench.h"
#include "measure/top_classes.h"
#include "measure/video_source.h"
#include "network/network.h"
#include "plan/slide/slide.h"

#define EW_VIDEO_TOP 5 /* classes of a prediction */

/* Counts so far. */
struct ew_video_counts {
    int64_t frames, dropped, predictions, late, decode_ns, run_ns;
};

/* A frame, with a prediction if the network ran on the window that ends with it. */
struct ew_video_step {
    struct ew_video_frame frame; /* writable */
    int64_t number;              /* index in the source */
    double time_s;               /* timestamp in the source */
    bool answered;
    int64_t late_ns; /* latency from the frame to the prediction */
    double error;    /* reconstruction error of an autoencoder */
    struct ew_top_class top[EW_VIDEO_TOP];
    int n_top; /* 0: the output is not a row of scores */
    struct ew_video_counts so_far;
    int64_t there_ns; /* when the frame became available */
};

/* Called by the display thread for every frame that was not dropped, in order. */
typedef void ew_video_stream_fn(void *ctx, struct ew_video_step *s);

struct ew_video_stream {
    const char *name;   /* name of the network, for messages */
    const char *source; /* "-": raw RGB frames of the network's size on standard input */
    const struct ew_network *net;
    struct ew_plan *p;
    struct ew_slide *slide; /* runs instead of p; NULL: none */
    int64_t window,
        hop; /* frames per prediction, and between predictions; 0: frames of the network's input */
    double fps;     /* 0: as fast as possible; cameras have their own rate */
    double seconds; /* 0: to the end */
    double budget_ms;
    bool full; /* frames include the source's original pixels */
    ew_video_stream_fn *show;
    void *ctx;
    const volatile int *stop; /* stops the run when nonzero */
};

struct ew_video_stream_result {
    struct ew_video_counts counts;
    struct ew_bench_stats time; /* latency from a window's last frame to its prediction */
    int64_t window, hop;
    int64_t size_changes, reopened; /* of the source */
    double wall_s;
    char source_error[512]; /* error that ended the source; empty: none */
};

/* Runs the stream; *out is valid up to a failure. */
ew_err ew_video_stream_run(const struct ew_video_stream *v, struct ew_video_stream_result *out);

/* Creates the evaluation of overlapping windows; *out is NULL if they do not overlap, or too little
 * can be reused. */
ew_err ew_video_stream_slide(const struct ew_graph *g, int64_t window, int64_t hop,
                             const struct ew_plan_opts *o, struct ew_slide **out);

#endif
