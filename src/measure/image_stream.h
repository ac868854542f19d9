/* SPDX-License-Identifier: Apache-2.0 */
/* Runs many images through a network: back to back, or at a camera's rate.
 *
 * Frame k of a camera arrives at start + k / fps.  After a late run the newest frame is taken and
 * older ones are dropped.  A deadline is missed if a frame is dropped, or if its outputs come later
 * than the budget. */
#ifndef EW_MEASURE_IMAGE_STREAM_H
#define EW_MEASURE_IMAGE_STREAM_H

#include <stdio.h>

#include "bench/bench.h"
#include "network/network.h"
#include "plan/plan.h"

/* Called after each file, with its results in the plan's outputs. */
typedef void ew_image_stream_fn(void *ctx, const char *path, int64_t read_ns, int64_t run_ns);

struct ew_image_stream {
    const char *name; /* name of the network, for messages */
    const struct ew_network *net;
    struct ew_plan *p;
    const char *const *paths;
    int n;
    double fps;               /* 0: back to back */
    double seconds;           /* with fps; 0: as many frames as there are paths */
    double budget_ms;         /* limit from a frame to its outputs */
    ew_image_stream_fn *show; /* without fps */
    void *ctx;
    FILE *talk; /* stream for the progress of a camera; NULL: none */
};

struct ew_image_stream_result {
    struct ew_bench_stats time; /* latency from frame, or file, to outputs */
    int64_t n;                  /* images processed */
    int64_t bad;                /* files that cannot be read, with a warning each */
    int64_t late, lost;         /* frames over the budget; frames dropped */
};

/* Runs the stream; *out is valid up to a failure.  Fails if no file can be read. */
ew_err ew_image_stream_run(const struct ew_image_stream *s, struct ew_image_stream_result *out);

#endif
