/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of video files, by FFmpeg's libraries. */
#ifndef EW_DATA_CLIP_FILE_H
#define EW_DATA_CLIP_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct ew_clip_opts {
    int64_t frames, stride; /* so many, each the stride-th */
    double place;           /* where they are taken from: 0 from the middle, -0.5 the beginning,
                             * 0.5 the end */
    int64_t h, w;           /* of a frame: scaled to cover that, and its middle cut out */
};

/* The name ends as video files do. */
bool ew_clip_is(const char *name);

/* Writes frames [frames, h, w, 3] of 8-bit RGB.  A file with fewer frames repeats its last one.
 * Files that are damaged, hold no video or are larger than 8192 pixels a side are refused; so are
 * all where this build or machine has no FFmpeg (EW_ERR_UNSUPPORTED). */
ew_err ew_clip_read(const char *path, const struct ew_clip_opts *o, uint8_t *to);

#endif
