/* SPDX-License-Identifier: Apache-2.0 */
/* What the live page shows of video: the last frame, its answer, answers over time, latencies.
 *
 * `edgewise run` writes it as one JSON file beside the results, a few times a second, whole or not
 * at all; `edgewise serve` hands that file to the page.  So nothing that runs waits for a browser,
 * and one command has ports and tokens. */
#ifndef EW_CLI_VIDEO_PAGE_H
#define EW_CLI_VIDEO_PAGE_H

#include "cli/canvas.h"
#include "cli/run_io.h"
#include "measure/video_stream.h"

#define EW_VIDEO_PAGE_VERSION 1   /* of the file */
#define EW_VIDEO_PAGE_ANSWERS 240 /* that the page shows */

struct ew_video_answer {
    int64_t frame;
    double time_s, latency_ms;
    double error; /* of an autoencoder */
    struct ew_top_class top[EW_VIDEO_TOP];
    int n_top;
};

struct ew_video_page {
    const char *name, *source; /* the network, and where frames come from */
    struct ew_run_show show;
    double budget_ms;
    bool reconstructs;
    /* Its own: */
    char *path; /* NULL: there is no page */
    int64_t start_ns, written_ns;
    char *picture;                                         /* the last */
    struct ew_video_answer answers[EW_VIDEO_PAGE_ANSWERS]; /* a ring */
    int64_t n;                                             /* all that came */
};

/* For the page of `edgewise serve --db DB`; name, source, show and budget are set. */
ew_err ew_video_page_open(struct ew_video_page *p, const char *db);
void ew_video_page_answer(struct ew_video_page *p, const struct ew_video_answer *a);
/* A frame and its number: the file is written, where the last time is long enough ago. */
ew_err ew_video_page_frame(struct ew_video_page *p, const struct ew_canvas *frame, int64_t number,
                           const struct ew_video_counts *c);
/* It has ended: the file is written with the last picture. */
ew_err ew_video_page_end(struct ew_video_page *p, const struct ew_video_counts *c);
void ew_video_page_fini(struct ew_video_page *p);

#endif
