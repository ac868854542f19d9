/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of files, cameras and streams through FFmpeg.  Used only inside the decoder process
 * (data/video_decoder.h). */
#ifndef EW_DATA_AV_SOURCE_H
#define EW_DATA_AV_SOURCE_H

#include "data/video_wire.h"

struct ew_av_source;

/* `fd` is the open file, owned by the caller; -1: FFmpeg opens `name`, a device or a URL. */
ew_err ew_av_open(const char *name, int fd, const struct ew_video_opts *o,
                  struct ew_av_source **out);
/* The next selected frame; *end: no more. */
ew_err ew_av_next(struct ew_av_source *s, struct ew_video_frame *out, bool *end);
void ew_av_close(struct ew_av_source *s); /* NULL is fine */

#endif
