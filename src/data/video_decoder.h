/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of video files, cameras and network streams, decoded in a process apart: a fault of the
 * decoder ends that process, and the program says so and goes on.  The process has no files but the
 * one that it is handed and starts no programs (base/sandbox.h); one that reads a file has no
 * sockets either. */
#ifndef EW_DATA_VIDEO_DECODER_H
#define EW_DATA_VIDEO_DECODER_H

#include "data/video_wire.h"

struct ew_video;

/* A camera or an address, in place of a file. */
bool ew_video_is_live(const char *name);

/* Opens "clip.mp4", "/dev/video0" or "rtsp://...".  EW_ERR_UNSUPPORTED: there is no FFmpeg here. */
ew_err ew_video_open(const char *name, const struct ew_video_opts *o, struct ew_video **out);
/* The next frame; *end: there is none.  A decoder that dies or falls silent is EW_ERR_FORMAT, and
 * this source is over; another can be opened. */
ew_err ew_video_next(struct ew_video *f, struct ew_video_frame *out, bool *end);
void ew_video_close(struct ew_video *f); /* NULL is fine */

/* The process that decodes, for tests that end it. */
int ew_video_process(const struct ew_video *f);

#endif
