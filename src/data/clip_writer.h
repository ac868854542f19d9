/* SPDX-License-Identifier: Apache-2.0 */
/* Writing video files, through FFmpeg. */
#ifndef EW_DATA_CLIP_WRITER_H
#define EW_DATA_CLIP_WRITER_H

#include <stdint.h>

#include "base/err.h"

struct ew_clip_writer;

/* Creates a file of the type of its extension (.mp4, .mkv), with frames of this size; odd sides
 * lose a line.  The codec is the type's default, or MPEG-4 if that cannot be encoded here. */
ew_err ew_clip_writer_open(const char *path, int64_t h, int64_t w, struct ew_clip_writer **out);
/* Adds a frame [h, w, 3] of 8-bit RGB, scaled if needed, at this time; times are made monotonic. */
ew_err ew_clip_writer_put(struct ew_clip_writer *c, const uint8_t *rgb, const int64_t size[2],
                          int64_t time_us);
/* Completes the file; NULL is fine. */
ew_err ew_clip_writer_close(struct ew_clip_writer *c);

#endif
