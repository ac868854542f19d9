/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the program and the video decoder process, whose messages are untrusted: every
 * field is checked. */
#ifndef EW_DATA_VIDEO_WIRE_H
#define EW_DATA_VIDEO_WIRE_H

#include <stdbool.h>

#include "data/data.h"

#define EW_VIDEO_SIDE      8192 /* most pixels per side */
#define EW_VIDEO_WIRE_TEXT 512  /* bytes of a message */

/* Selection and size of frames. */
struct ew_video_opts {
    int64_t frames; /* 0: all */
    int64_t stride; /* every stride-th frame */
    int64_t first;  /* first frame; -1: by `place` */
    double place;   /* position: -0.5 the beginning, 0 the middle, 0.5 the end */
    int64_t h, w;   /* scaled to cover it, then centre-cropped */
    bool full;      /* also deliver unscaled frames */
};

/* One frame, with reusable memory. */
struct ew_video_frame {
    int64_t h, w;           /* of `pixels`, [h, w, 3] of 8-bit RGB */
    int64_t full_h, full_w; /* of the source */
    int64_t time_us;        /* presentation time */
    int64_t decode_ns;      /* decoding time */
    struct ew_bytes pixels, full;
};

void ew_video_frame_fini(struct ew_video_frame *f);

enum ew_video_wire_kind { EW_VIDEO_WIRE_FRAME = 1, EW_VIDEO_WIRE_END, EW_VIDEO_WIRE_ERROR };

/* Header of a request, followed by the path. */
struct ew_video_wire_request {
    uint32_t magic, path_bytes;
    struct ew_video_opts o;
};

/* Header of a reply, followed by pixels or an error text. */
struct ew_video_wire_head {
    uint32_t magic, kind;
    int32_t h, w, full_h, full_w;
    int64_t time_us, decode_ns;
    uint32_t full_bytes; /* bytes of the unscaled frame after the pixels */
    uint32_t text_bytes; /* error text instead of pixels */
};

#define EW_VIDEO_WIRE_MAGIC 0x31465745u /* "EWF1" */

/* Receives one message: a frame, the end, or an error of the decoder (*kind EW_VIDEO_WIRE_ERROR,
 * its text in `text`).  EW_ERR_FORMAT: malformed, or not what `o` asked for. */
ew_err ew_video_wire_take(int fd, const struct ew_video_opts *o, int timeout_ms,
                          struct ew_video_frame *out, enum ew_video_wire_kind *kind,
                          char text[EW_VIDEO_WIRE_TEXT]);
/* Sends one: f for frames, text for errors. */
ew_err ew_video_wire_give(int fd, enum ew_video_wire_kind kind, const struct ew_video_frame *f,
                          const char *text);

/* Checks sizes and counts. */
ew_err ew_video_opts_check(const struct ew_video_opts *o);

#endif
