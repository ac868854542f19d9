/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of video files, cameras and network streams, decoded in a sandboxed process
 * (base/sandbox.h): a crash of the decoder ends that process only.  It has no files but the one it
 * is given and starts no programs; if it reads a file it has no other sockets. */
#ifndef EW_DATA_VIDEO_DECODER_H
#define EW_DATA_VIDEO_DECODER_H

#include "data/video_wire.h"

struct ew_video;

/* True for a camera or a URL, rather than a file. */
bool ew_video_is_live(const char *name);

/* Opens "clip.mp4", "/dev/video0" or "rtsp://...".  EW_ERR_UNSUPPORTED: no FFmpeg. */
ew_err ew_video_open(const char *name, const struct ew_video_opts *o, struct ew_video **out);
/* The next frame; *end: no more.  EW_ERR_FORMAT if the decoder dies or times out, which ends this
 * source; others can be opened. */
ew_err ew_video_next(struct ew_video *f, struct ew_video_frame *out, bool *end);
void ew_video_close(struct ew_video *f); /* NULL is fine */

/* The decoder process, for tests that kill it. */
int ew_video_process(const struct ew_video *f);

#endif
