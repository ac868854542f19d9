/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the program and the process that decodes video for it.  What comes from there
 * is not trusted: every field is checked before it is used. */
#ifndef EW_DATA_VIDEO_WIRE_H
#define EW_DATA_VIDEO_WIRE_H

#include <stdbool.h>

#include "data/data.h"

#define EW_VIDEO_SIDE      8192 /* pixels, at most */
#define EW_VIDEO_WIRE_TEXT 512  /* bytes of a message */

/* Which frames are wanted, and how. */
struct ew_video_opts {
    int64_t frames; /* 0: all that come */
    int64_t stride; /* each the stride-th */
    int64_t first;  /* frame of the source; -1: as `place` says */
    double place;   /* -0.5: from its beginning, 0: from its middle, 0.5: to its end */
    int64_t h, w;   /* scaled to cover that, and the middle cut out */
    bool full;      /* the frames as they are, too */
};

/* One frame; its memory is used again for the next. */
struct ew_video_frame {
    int64_t h, w;           /* of `pixels`, [h, w, 3] of 8-bit RGB */
    int64_t full_h, full_w; /* of the source */
    int64_t time_us;        /* by the source's own clock */
    int64_t decode_ns;      /* that it took to make */
    struct ew_bytes pixels, full;
};

void ew_video_frame_fini(struct ew_video_frame *f);

enum ew_video_wire_kind { EW_VIDEO_WIRE_FRAME = 1, EW_VIDEO_WIRE_END, EW_VIDEO_WIRE_ERROR };

/* What is sent before the path of a source. */
struct ew_video_wire_request {
    uint32_t magic, path_bytes;
    struct ew_video_opts o;
};

/* What is sent before pixels or a text. */
struct ew_video_wire_head {
    uint32_t magic, kind;
    int32_t h, w, full_h, full_w;
    int64_t time_us, decode_ns;
    uint32_t full_bytes; /* after the pixels */
    uint32_t text_bytes; /* of an error, in place of pixels */
};

#define EW_VIDEO_WIRE_MAGIC 0x31465745u /* "EWF1" */

/* Takes one message: a frame, the end, or the error that the other side met (*kind
 * EW_VIDEO_WIRE_ERROR, the text in `text`).  EW_ERR_FORMAT: the message is none, or not what `o`
 * asked for. */
ew_err ew_video_wire_take(int fd, const struct ew_video_opts *o, int timeout_ms,
                          struct ew_video_frame *out, enum ew_video_wire_kind *kind,
                          char text[EW_VIDEO_WIRE_TEXT]);
/* The other direction: f for frames, text for errors. */
ew_err ew_video_wire_give(int fd, enum ew_video_wire_kind kind, const struct ew_video_frame *f,
                          const char *text);

/* Whether sizes and counts are ones that can be asked for. */
ew_err ew_video_opts_check(const struct ew_video_opts *o);

#endif
