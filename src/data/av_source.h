/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of files, cameras and streams by FFmpeg's libraries, which are opened when the first is
 * read.  Used inside the process that decodes (data/video_decoder.h); nothing else calls FFmpeg. */
#ifndef EW_DATA_AV_SOURCE_H
#define EW_DATA_AV_SOURCE_H

#include "data/video_wire.h"

struct ew_av_source;

/* EW_ERR_UNSUPPORTED where this build or machine has no FFmpeg. */
ew_err ew_av_libraries(void);

/* `fd` is the file, and stays the caller's; -1: FFmpeg opens `name` itself: a device or an URL. */
ew_err ew_av_open(const char *name, int fd, const struct ew_video_opts *o,
                  struct ew_av_source **out);
/* The next frame that is wanted; *end: there is none. */
ew_err ew_av_next(struct ew_av_source *s, struct ew_video_frame *out, bool *end);
void ew_av_close(struct ew_av_source *s); /* NULL is fine */

#endif
