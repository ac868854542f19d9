/* SPDX-License-Identifier: Apache-2.0 */
/* `edgewise run` on video as it comes: a file, a camera, a network stream, raw frames. */
#ifndef EW_CLI_RUN_VIDEO_H
#define EW_CLI_RUN_VIDEO_H

#include "cli/run_io.h"
#include "measure/video_stream.h"

struct ew_run_video {
    struct ew_video_stream stream; /* full, show, ctx and stop are set here */
    struct ew_run_show show;
    const char *annotate; /* a clip with names and bars; NULL: none */
    const char *sheet;    /* a picture of the answers; NULL: none */
    const char *live;     /* results whose live page shows it; NULL: none */
    bool json;
};

/* Runs to the end of the source, prints answers as they come and the sum of it. */
ew_err ew_run_video(const struct ew_run_video *v);

#endif
