/* SPDX-License-Identifier: Apache-2.0 */
/* Messages over two pipes. */
#include "study/frames.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD_CHARS 48
#define BLOCK      65536

static ew_err set_nonblocking(int fd, const char *name)
{
    const int flags = fcntl(fd, F_GETFL);
    EW_CHECK(flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0, EW_ERR_IO, "%s: %s", name,
             strerror(errno));
    return EW_OK;
}

ew_err ew_frames_open(struct ew_frames *f, int in, int out, const char *name)
{
    *f = (struct ew_frames){.in = in, .out = out, .name = name};
    EW_TRY(set_nonblocking(in, name));
    return set_nonblocking(out, name);
}

void ew_frames_close(struct ew_frames *f)
{
    if (f->in >= 0)
        close(f->in);
    if (f->out >= 0 && f->out != f->in)
        close(f->out);
    free(f->got);
    free(f->left);
    *f = (struct ew_frames){.in = -1, .out = -1, .name = f->name};
}

/* Room for `more` bytes after the first n, and a NUL. */
static ew_err make_room(char **bytes, size_t *room, size_t n, size_t more)
{
    if (n + more + 1 <= *room)
        return EW_OK;
    const size_t want = 2 * (n + more) + 1;
    char *bigger = realloc(*bytes, want);
    EW_CHECK(bigger, EW_ERR_MEMORY, "no memory for a message of %zu bytes", more);
    *bytes = bigger;
    *room = want;
    return EW_OK;
}

/* ---- Reading --------------------------------------------------------------------------------- */

ew_err ew_frames_read(struct ew_frames *f, bool *end)
{
    *end = f->in < 0;
    if (f->used) { /* the last messages are no longer needed */
        memmove(f->got, f->got + f->used, f->n_got - f->used);
        f->n_got -= f->used;
        f->used = 0;
    }
    while (f->in >= 0) {
        EW_TRY(make_room(&f->got, &f->got_room, f->n_got, BLOCK));
        const ssize_t n = read(f->in, f->got + f->n_got, BLOCK);
        if (n > 0) {
            f->n_got += (size_t)n;
            if (f->n_got > EW_FRAME_LIMIT + HEAD_CHARS)
                return EW_OK; /* next refuses it */
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        *end = n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
        return EW_OK;
    }
    return EW_OK;
}

static ew_err not_a_message(const struct ew_frames *f, const char *head, size_t n)
{
    char shown[61];
    size_t k = 0;
    for (; k < n && k + 1 < sizeof(shown) && head[k] != '\n'; k++)
        shown[k] = head[k] >= ' ' && head[k] < 127 ? head[k] : '?';
    shown[k] = '\0';
    return ew_fail(EW_ERR_FORMAT,
                   "%s: answers '%s', which is not a message of edgewise; its shell must not print "
                   "anything itself",
                   f->name, shown);
}

ew_err ew_frames_next(struct ew_frames *f, struct ew_frame *out, bool *there)
{
    char *head = f->got ? f->got + f->used : NULL;
    const size_t n = f->n_got - f->used;
    char *line_end = n ? memchr(head, '\n', n < HEAD_CHARS ? n : HEAD_CHARS) : NULL;
    long long size = 0;
    int length = 0;
    *there = false;
    if (!n)
        return EW_OK;
    if (strncmp(head, "edgewise ", n < 9 ? n : 9) != 0 || (!line_end && n >= HEAD_CHARS))
        return not_a_message(f, head, n);
    if (!line_end)
        return EW_OK;
    *line_end = '\0';
    const bool good = sscanf(head, "edgewise %15[a-z] %12lld%n", out->type, &size, &length) == 2 &&
                      head + length == line_end && size >= 0;
    *line_end = '\n';
    if (!good)
        return not_a_message(f, head, n);
    EW_CHECK((size_t)size <= EW_FRAME_LIMIT, EW_ERR_LIMIT, "%s: a message of %lld bytes", f->name,
             size);
    const size_t before = (size_t)length + 1;
    if (n < before + (size_t)size + 1)
        return EW_OK;
    out->data = head + before;
    out->size = (size_t)size;
    out->data[size] = '\0'; /* replaces the newline after the data */
    f->used += before + (size_t)size + 1;
    *there = true;
    return EW_OK;
}

/* ---- Writing --------------------------------------------------------------------------------- */

ew_err ew_frames_flush(struct ew_frames *f)
{
    while (f->sent < f->n_left) {
        const ssize_t n = f->out < 0 ? -1 : write(f->out, f->left + f->sent, f->n_left - f->sent);
        if (n > 0)
            f->sent += (size_t)n;
        else if (f->out >= 0 && errno == EINTR)
            continue;
        else if (f->out >= 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return EW_OK;
        else
            return ew_fail(EW_ERR_IO, "%s: the connection is gone", f->name);
    }
    f->sent = f->n_left = 0;
    return EW_OK;
}

bool ew_frames_waiting(const struct ew_frames *f)
{
    return f->sent < f->n_left;
}

ew_err ew_frames_put(struct ew_frames *f, const char *type, const void *data, size_t size)
{
    EW_CHECK(size <= EW_FRAME_LIMIT, EW_ERR_LIMIT, "%s: %zu bytes are too much for one message",
             f->name, size);
    EW_TRY(make_room(&f->left, &f->left_room, f->n_left, HEAD_CHARS + size));
    f->n_left += (size_t)snprintf(f->left + f->n_left, HEAD_CHARS, "edgewise %s %zu\n", type, size);
    if (size)
        memcpy(f->left + f->n_left, data, size);
    f->n_left += size;
    f->left[f->n_left++] = '\n';
    return ew_frames_flush(f);
}

ew_err ew_frames_put_text(struct ew_frames *f, const char *type, const char *text)
{
    return ew_frames_put(f, type, text, strlen(text));
}
