/* SPDX-License-Identifier: Apache-2.0 */
/* Video files that are written, by FFmpeg's libraries. */
#ifndef EW_DATA_CLIP_WRITER_H
#define EW_DATA_CLIP_WRITER_H

#include <stdint.h>

#include "base/err.h"

struct ew_clip_writer;

/* A file whose kind the name says (.mp4, .mkv), of frames of this size; odd sides lose a line.  The
 * codec is the kind's own, or MPEG-4 where that cannot be encoded here. */
ew_err ew_clip_writer_open(const char *path, int64_t h, int64_t w, struct ew_clip_writer **out);
/* A frame [h, w, 3] of 8-bit RGB, scaled where it has another size, at this time of the clip; times
 * that do not rise are made to. */
ew_err ew_clip_writer_put(struct ew_clip_writer *c, const uint8_t *rgb, const int64_t size[2],
                          int64_t time_us);
/* Completes the file; NULL is fine. */
ew_err ew_clip_writer_close(struct ew_clip_writer *c);

#endif
