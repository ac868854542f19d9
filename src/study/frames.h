/* SPDX-License-Identifier: Apache-2.0 */
/* Messages over two pipes: a line "edgewise TYPE BYTES", then that many bytes and a newline.  Input
 * is checked, since it may be a shell's greeting or come from a compromised board.
 *
 * No function blocks: read and flush move what the pipe has room for, and the caller polls. */
#ifndef EW_STUDY_FRAMES_H
#define EW_STUDY_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define EW_FRAME_TYPE  16
#define EW_FRAME_LIMIT ((size_t)256 << 20)

struct ew_frames {
    int in, out;      /* -1: closed; both are set not to block */
    const char *name; /* of the other side, for messages; borrowed */
    char *got, *left; /* bytes received and not yet used; bytes still to be sent */
    size_t n_got, used, got_room, n_left, sent, left_room;
};

/* One message; the bytes have a NUL after them and stay until the next call of read. */
struct ew_frame {
    char type[EW_FRAME_TYPE];
    char *data;
    size_t size;
};

/* Takes the descriptors over. */
ew_err ew_frames_open(struct ew_frames *f, int in, int out, const char *name);
void ew_frames_close(struct ew_frames *f); /* fine twice */

/* Reads what has come; *end: the other side has closed. */
ew_err ew_frames_read(struct ew_frames *f, bool *end);

/* The next whole message; *there is false if none is complete.  Fails on malformed input. */
ew_err ew_frames_next(struct ew_frames *f, struct ew_frame *out, bool *there);

/* Puts a message into the queue, and sends what the pipe takes. */
ew_err ew_frames_put(struct ew_frames *f, const char *type, const void *data, size_t size);
ew_err ew_frames_put_text(struct ew_frames *f, const char *type, const char *text);
ew_err ew_frames_flush(struct ew_frames *f);
bool ew_frames_waiting(const struct ew_frames *f); /* something is still to go */

#endif
