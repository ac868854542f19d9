/* SPDX-License-Identifier: Apache-2.0 */
/* Where a video stream has its frames from: decoded, or raw from standard input. */
#ifndef EW_MEASURE_VIDEO_SOURCE_H
#define EW_MEASURE_VIDEO_SOURCE_H

#include "data/video_decoder.h"

struct ew_video_source {
    const char *name;
    struct ew_video_opts o;
    struct ew_video *frames; /* NULL: raw */
    bool live;
    int64_t until_ns;     /* when to wait no longer for one that has gone away; 0: no such time */
    int64_t n;            /* frames given */
    int64_t size[2];      /* of the last frame */
    int64_t size_changes; /* within the source */
    int64_t reopened;     /* after it had gone away */
    int failures;         /* to open it again, since the last frame */
    int64_t decode_ns;
};

ew_err ew_video_source_open(const char *name, const struct ew_video_opts *o,
                            struct ew_video_source *out);
/* The next frame; *end: there is none.  A camera or stream that has given frames and goes away is
 * waited for, ten seconds, unless *stop; that, and another size of frames, is said. */
ew_err ew_video_source_next(struct ew_video_source *s, const volatile int *stop,
                            struct ew_video_frame *out, bool *end);
void ew_video_source_close(struct ew_video_source *s);

#endif
