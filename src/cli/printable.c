/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces stdout and stderr by glibc custom streams that escape control characters. */
#include "cli/printable.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/utf8.h"

#define BLOCK 1024

/* An incomplete UTF-8 sequence is kept in `rest` for the next write. */
struct stream {
    int fd;
    bool raw;
    unsigned char rest[4];
    size_t n_rest;
};

static bool write_all(int fd, const unsigned char *data, size_t n)
{
    while (n > 0) {
        const ssize_t k = write(fd, data, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        data += k;
        n -= (size_t)k;
    }
    return true;
}

static size_t put_escaped(const unsigned char *s, size_t n, unsigned char *to)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *to++ = '\\';
        *to++ = 'x';
        *to++ = (unsigned char)digits[s[i] >> 4];
        *to++ = (unsigned char)digits[s[i] & 15];
    }
    return 4 * n;
}

/* Writes up to BLOCK + 4 bytes; an incomplete sequence at the end is kept in s->rest. */
static bool write_block(struct stream *s, const unsigned char *in, size_t n)
{
    unsigned char out[4 * (BLOCK + 4)];
    size_t at = 0, used = 0;
    s->n_rest = 0;
    while (at < n) {
        const int length = ew_utf8_length(in + at, n - at);
        if (length < 0) {
            s->n_rest = n - at;
            memcpy(s->rest, in + at, s->n_rest);
            break;
        }
        const size_t k = length > 0 ? (size_t)length : 1;
        if (length == 0 || ew_utf8_is_control(in + at, length)) {
            used += put_escaped(in + at, k, out + used);
        } else {
            memcpy(out + used, in + at, k);
            used += k;
        }
        at += k;
    }
    return write_all(s->fd, out, used);
}

static ssize_t filter(void *cookie, const char *data, size_t n)
{
    struct stream *s = cookie;
    if (s->raw)
        return write_all(s->fd, (const unsigned char *)data, n) ? (ssize_t)n : 0;
    for (size_t at = 0; at < n;) {
        unsigned char block[BLOCK + 4];
        const size_t rest = s->n_rest, k = n - at < BLOCK ? n - at : BLOCK;
        memcpy(block, s->rest, rest);
        memcpy(block + rest, data + at, k);
        if (!write_block(s, block, rest + k))
            return 0;
        at += k;
    }
    return (ssize_t)n;
}

static struct stream streams[2] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};

/* NULL: no memory; the unfiltered stream stays in use. */
static FILE *open_filtered(struct stream *s, int mode)
{
    FILE *f = fopencookie(s, "w", (cookie_io_functions_t){.write = filter});
    if (f)
        setvbuf(f, NULL, mode, mode == _IONBF ? 0 : BUFSIZ);
    return f;
}

void ew_printable_begin(void)
{
    FILE *out = open_filtered(&streams[0], isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
    FILE *err = open_filtered(&streams[1], _IOLBF);
    if (out)
        stdout = out;
    if (err)
        stderr = err;
}

void ew_printable_raw(bool raw)
{
    fflush(stdout);
    streams[0].raw = raw;
}
