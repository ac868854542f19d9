/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of video files, by FFmpeg's libraries. */
#ifndef EW_DATA_CLIP_FILE_H
#define EW_DATA_CLIP_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct ew_clip_opts {
    int64_t frames, stride; /* number of frames, every stride-th */
    double place;           /* position: 0 the middle, -0.5 the beginning, 0.5 the end */
    int64_t h, w;           /* of a frame: scaled to cover it, then centre-cropped */
};

/* True for the extensions of video files. */
bool ew_clip_is(const char *name);

/* Reads frames [frames, h, w, 3] of 8-bit RGB; a file with fewer frames repeats its last one. Fails
 * on files that are damaged, without video or larger than 8192 pixels a side; EW_ERR_UNSUPPORTED
 * without FFmpeg. */
ew_err ew_clip_read(const char *path, const struct ew_clip_opts *o, uint8_t *to);

#endif
