/* SPDX-License-Identifier: Apache-2.0 */
/* Video through a network, by three threads that hand on frames: one takes them from the source,
 * the calling one keeps the last `window` of them and runs the network every `hop`, one shows the
 * answers.
 *
 * For cameras, and with a frame rate, the oldest waiting frames are dropped and counted when the
 * network is late. */
#ifndef EW_MEASURE_VIDEO_STREAM_H
#define EW_MEASURE_VIDEO_STREAM_H

#include "bench/bench.h"
#include "measure/top_classes.h"
#include "measure/video_source.h"
#include "network/network.h"
#include "plan/slide/slide.h"

#define EW_VIDEO_TOP 5 /* classes of an answer */

/* So far. */
struct ew_video_counts {
    int64_t frames, dropped, answers, late, decode_ns, run_ns;
};

/* A frame, and the answer where the network ran on the window that ends with it. */
struct ew_video_step {
    struct ew_video_frame frame; /* may be drawn into */
    int64_t number;              /* in the source, from 0 */
    double time_s;               /* of the frame in the source */
    bool answered;
    int64_t late_ns; /* from the frame to the answer */
    double error;    /* of an autoencoder */
    struct ew_top_class top[EW_VIDEO_TOP];
    int n_top; /* 0: the output is no row of scores */
    struct ew_video_counts so_far;
    int64_t there_ns; /* when the frame became available */
};

/* Called by the showing thread for every frame that was not dropped, in order. */
typedef void ew_video_stream_fn(void *ctx, struct ew_video_step *s);

struct ew_video_stream {
    const char *name;   /* of the network, for messages */
    const char *source; /* "-": raw RGB frames of the network's size on standard input */
    const struct ew_network *net;
    struct ew_plan *p;
    struct ew_slide *slide; /* runs in its place; NULL: none */
    int64_t window, hop; /* frames that an answer is made of, and between answers; 0: the network's
                          * own number */
    double fps;          /* 0: as fast as the network takes them; a camera's own pace */
    double seconds;      /* 0: to the end */
    double budget_ms;
    bool full; /* frames come with their pixels as the source has them */
    ew_video_stream_fn *show;
    void *ctx;
    const volatile int *stop; /* ends the run when it becomes true */
};

struct ew_video_stream_result {
    struct ew_video_counts counts;
    struct ew_bench_stats time; /* from a window's last frame to its answer; of answers, if any */
    int64_t window, hop;
    int64_t size_changes, reopened; /* of the source */
    double wall_s;
    char source_error[512]; /* after which answers ended; empty: none */
};

/* *out holds what was done before a failure, too. */
ew_err ew_video_stream_run(const struct ew_video_stream *v, struct ew_video_stream_result *out);

/* For windows that overlap; *out: NULL where they do not, or too little could be kept. */
ew_err ew_video_stream_slide(const struct ew_graph *g, int64_t window, int64_t hop,
                             const struct ew_plan_opts *o, struct ew_slide **out);

#endif
