/* SPDX-License-Identifier: Apache-2.0 */
/* `edgewise run` on video: a file, a camera, a network stream, raw frames. */
#ifndef EW_CLI_RUN_VIDEO_H
#define EW_CLI_RUN_VIDEO_H

#include "cli/run_io.h"
#include "measure/video_stream.h"

struct ew_run_video {
    struct ew_video_stream stream; /* full, show, ctx and stop are set by ew_run_video */
    struct ew_run_show show;
    const char *annotate; /* annotated clip to write; NULL: none */
    const char *sheet;    /* contact sheet to write; NULL: none */
    const char *live;     /* database whose live page shows the video; NULL: none */
    bool json;
};

/* Runs to the end of the source; prints predictions as they come, and a summary. */
ew_err ew_run_video(const struct ew_run_video *v);

#endif
