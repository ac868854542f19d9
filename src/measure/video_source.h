/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a video stream: decoded, or raw frames on standard input. */
#ifndef EW_MEASURE_VIDEO_SOURCE_H
#define EW_MEASURE_VIDEO_SOURCE_H

#include "data/video_decoder.h"

struct ew_video_source {
    const char *name;
    struct ew_video_opts o;
    struct ew_video *frames; /* NULL: raw */
    bool live;
    int64_t until_ns;     /* when to give up reopening; 0: not waiting */
    int64_t n;            /* frames delivered */
    int64_t size[2];      /* size of the last frame */
    int64_t size_changes; /* changes of size within the source */
    int64_t reopened;     /* times reopened */
    int failures;         /* failures to reopen since the last frame */
    int64_t decode_ns;
};

ew_err ew_video_source_open(const char *name, const struct ew_video_opts *o,
                            struct ew_video_source *out);
/* The next frame; *end: there is none.  A camera or stream that disappears after its first frame is
 * reopened for up to ten seconds, unless *stop is set; that, and a change of size, is reported. */
ew_err ew_video_source_next(struct ew_video_source *s, const volatile int *stop,
                            struct ew_video_frame *out, bool *end);
void ew_video_source_close(struct ew_video_source *s);

#endif
