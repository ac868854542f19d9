/* SPDX-License-Identifier: Apache-2.0 */
/* Many images through a network: one after the other, or at a camera's rate.
 *
 * Frame k of a camera arrives at start + k / fps.  After a late run the newest frame is taken and
 * older ones are lost.  A deadline is missed if a frame is lost, or if its outputs come later than
 * the budget. */
#ifndef EW_MEASURE_IMAGE_STREAM_H
#define EW_MEASURE_IMAGE_STREAM_H

#include <stdio.h>

#include "bench/bench.h"
#include "network/network.h"
#include "plan/plan.h"

/* Called after each file; the plan's outputs are of it. */
typedef void ew_image_stream_fn(void *ctx, const char *path, int64_t read_ns, int64_t run_ns);

struct ew_image_stream {
    const char *name; /* of the network, for messages */
    const struct ew_network *net;
    struct ew_plan *p;
    const char *const *paths;
    int n;
    double fps;               /* 0: each as soon as the one before is done */
    double seconds;           /* with fps; 0: as many frames as there are paths */
    double budget_ms;         /* from a frame to its outputs */
    ew_image_stream_fn *show; /* without fps */
    void *ctx;
    FILE *talk; /* where the progress of a camera is shown; NULL: nowhere */
};

struct ew_image_stream_result {
    struct ew_bench_stats time; /* from frame, or file, to outputs */
    int64_t n;                  /* images that were run */
    int64_t late, lost;         /* over the budget; frames of a camera that were passed over */
};

/* *out holds what was done before a failure, too. */
ew_err ew_image_stream_run(const struct ew_image_stream *s, struct ew_image_stream_result *out);

#endif
