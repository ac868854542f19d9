/* SPDX-License-Identifier: Apache-2.0 */
/* `edgewise run` on video as it comes: a file, a camera, a network stream, raw frames. */
#ifndef EW_CLI_RUN_VIDEO_H
#define EW_CLI_RUN_VIDEO_H

#include "cli/run_io.h"
#include "plan/slide/slide.h"

struct ew_run_video {
    const char *name;
    const char *source; /* "-": raw RGB frames of the network's size on standard input */
    const struct ew_network *net;
    struct ew_plan *p;
    struct ew_slide *slide; /* runs in its place; NULL: none */
    struct ew_run_show show;
    int64_t window, hop; /* frames that an answer is made of, and between answers; 0: the network's
                          * own number */
    double fps;          /* 0: as fast as the network takes them; a camera's own pace */
    double seconds;      /* 0: to the end */
    double budget_ms;
    const char *annotate; /* a clip with names and bars; NULL: none */
    const char *sheet;    /* a picture of the answers; NULL: none */
    const char *live;     /* results whose live page shows it; NULL: none */
    bool json;
};

/* For windows that overlap; *out: NULL where they do not, or too little could be kept. */
ew_err ew_run_video_slide(const struct ew_graph *g, int64_t window, int64_t hop,
                          const struct ew_plan_opts *o, struct ew_slide **out);

/* Runs to the end of the source, prints answers as they come and the sum of it. */
ew_err ew_run_video(const struct ew_run_video *v);

#endif
