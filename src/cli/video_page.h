/* SPDX-License-Identifier: Apache-2.0 */
/* Video on the live page: the last frame with its prediction, predictions over time, latencies.
 *
 * `edgewise run` writes them to a JSON file beside the database, a few times a second, atomically;
 * `edgewise serve` passes the file on to the page.  So inference never waits for a browser, and
 * only `serve` handles ports and tokens. */
#ifndef EW_CLI_VIDEO_PAGE_H
#define EW_CLI_VIDEO_PAGE_H

#include "cli/canvas.h"
#include "cli/run_io.h"
#include "measure/video_stream.h"

#define EW_VIDEO_PAGE_VERSION     1   /* of the file format */
#define EW_VIDEO_PAGE_PREDICTIONS 240 /* shown by the page */

struct ew_video_prediction {
    int64_t frame;
    double time_s, latency_ms;
    double error; /* of an autoencoder */
    struct ew_top_class top[EW_VIDEO_TOP];
    int n_top;
};

struct ew_video_page {
    const char *name, *source; /* network, and source of the frames */
    struct ew_run_show show;
    double budget_ms;
    bool reconstructs;
    /* Private: */
    char *path; /* NULL: closed */
    int64_t start_ns, written_ns;
    char *picture;                                                     /* last frame, encoded */
    struct ew_video_prediction predictions[EW_VIDEO_PAGE_PREDICTIONS]; /* ring buffer */
    int64_t n;                                                         /* predictions so far */
};

/* Opens the file for `edgewise serve --db DB`; name, source, show and budget are set. */
ew_err ew_video_page_open(struct ew_video_page *p, const char *db);
void ew_video_page_prediction(struct ew_video_page *p, const struct ew_video_prediction *a);
/* Adds a frame; writes the file if the last write is long enough ago. */
ew_err ew_video_page_frame(struct ew_video_page *p, const struct ew_canvas *frame, int64_t number,
                           const struct ew_video_counts *c);
/* Writes the file a last time at the end of the video. */
ew_err ew_video_page_end(struct ew_video_page *p, const struct ew_video_counts *c);
void ew_video_page_fini(struct ew_video_page *p);

#endif
