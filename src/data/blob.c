/* SPDX-License-Identifier: Apache-2.0 */
/* Files with random access. */
#include "data/blob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

#define MAX_PACKED   ((size_t)1 << 30) /* bytes of a gzip file */
#define MAX_UNPACKED ((size_t)4 << 30)

/* Images compress 2 to 10 times (MNIST 5), drawings 40. */
#define MAX_RATIO   64
#define LEAST_LIMIT ((size_t)64 << 20) /* labels of few classes compress better, and are small */

size_t ew_gunzip_limit(size_t packed)
{
    const size_t ratio = packed > SIZE_MAX / MAX_RATIO ? SIZE_MAX : packed * MAX_RATIO;
    return ratio > LEAST_LIMIT ? ratio : LEAST_LIMIT;
}

/* ---- gzip ------------------------------------------------------------------------------------ */

#if EW_HAVE_ZLIB
#include <zlib.h>

/* Grows the output buffer. */
static ew_err grow(uint8_t **out, size_t *room, size_t limit, const char *what)
{
    EW_CHECK(*room < limit, EW_ERR_LIMIT, "%s: inflates to more than %zu bytes", what, limit);
    const size_t more = *room ? (*room > limit / 2 ? limit : *room * 2) : (size_t)1 << 16;
    uint8_t *p = realloc(*out, more);
    EW_CHECK(p, EW_ERR_MEMORY, "%s: no memory for %zu bytes", what, more);
    *out = p;
    *room = more;
    return EW_OK;
}

static ew_err inflate_all(z_stream *z, size_t limit, const char *what, uint8_t **out, size_t *size)
{
    size_t room = 0;
    int state = Z_OK;
    *size = 0;
    while (state != Z_STREAM_END) {
        if (*size == room)
            EW_TRY(grow(out, &room, limit, what));
        const size_t step = room - *size < 1u << 30 ? room - *size : 1u << 30;
        z->next_out = *out + *size;
        z->avail_out = (uInt)step;
        state = inflate(z, Z_NO_FLUSH);
        *size += step - z->avail_out;
        EW_CHECK(state == Z_OK || state == Z_STREAM_END, EW_ERR_FORMAT, "%s: damaged gzip data%s%s",
                 what, z->msg ? ": " : "", z->msg ? z->msg : "");
        EW_CHECK(state == Z_STREAM_END || z->avail_in || !z->avail_out, EW_ERR_FORMAT,
                 "%s: the gzip data ends early", what);
    }
    return EW_OK;
}

/* Decompresses to at most `limit` bytes; free with free().  `what` is for messages. */
static ew_err inflate_gzip(const uint8_t *bytes, size_t size, size_t limit, const char *what,
                           uint8_t **out, size_t *out_size)
{
    z_stream z = {0};
    EW_CHECK(inflateInit2(&z, 15 + 16) == Z_OK, EW_ERR_MEMORY, "%s: no memory to inflate it", what);
    EW_CHECK(size < UINT32_MAX, EW_ERR_LIMIT, "%s: %zu bytes of gzip data", what, size);
    memcpy(&z.next_in, &bytes, sizeof(bytes)); /* zlib wants no const, and writes nothing */
    z.avail_in = (uInt)size;
    *out = NULL;
    const ew_err err = inflate_all(&z, limit, what, out, out_size);
    inflateEnd(&z);
    if (err != EW_OK) {
        free(*out);
        *out = NULL;
    }
    return err;
}

ew_err ew_gzip(const void *bytes, size_t size, uint8_t **out, size_t *out_size)
{
    z_stream z = {0};
    EW_CHECK(size < UINT32_MAX / 2, EW_ERR_LIMIT, "%zu bytes to pack", size);
    EW_CHECK(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK, EW_ERR_MEMORY,
             "no memory to pack %zu bytes", size);
    const uLong room = deflateBound(&z, (uLong)size);
    *out = malloc(room);
    if (*out) {
        memcpy(&z.next_in, &bytes, sizeof(bytes)); /* zlib wants no const, and writes nothing */
        z.avail_in = (uInt)size;
        z.next_out = *out;
        z.avail_out = (uInt)room;
        const int state = deflate(&z, Z_FINISH);
        EW_ASSERT(state == Z_STREAM_END); /* the output fits */
        *out_size = z.total_out;
    }
    deflateEnd(&z);
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory to pack %zu bytes", size);
    return EW_OK;
}
#else
ew_err ew_gzip(const void *bytes, size_t size, uint8_t **out, size_t *out_size)
{
    return ew_fail(EW_ERR_UNSUPPORTED, "this build packs nothing (EW_ZLIB)");
}

static ew_err inflate_gzip(const uint8_t *bytes, size_t size, size_t limit, const char *what,
                           uint8_t **out, size_t *out_size)
{
    return ew_fail(EW_ERR_UNSUPPORTED, "%s: this build reads no gzip files (EW_ZLIB)", what);
}
#endif

/* ---- Opening --------------------------------------------------------------------------------- */

bool ew_blob_is_open(const struct ew_blob *b)
{
    return b->path != NULL;
}

void ew_blob_close(struct ew_blob *b)
{
    if (b->path && b->fd >= 0)
        close(b->fd);
    free(b->memory);
    free(b->path);
    *b = (struct ew_blob){0};
}

static ew_err unpack(struct ew_blob *b)
{
    EW_CLEANUP(ew_free_ptr) char *bytes = NULL;
    size_t size = 0, unpacked = 0;
    EW_TRY(ew_file_read_fd(b->fd, b->path, MAX_PACKED, &bytes, &size));
    const size_t ratio = ew_gunzip_limit(size);
    const size_t limit = ratio < MAX_UNPACKED ? ratio : MAX_UNPACKED;
    EW_TRY(inflate_gzip((const uint8_t *)bytes, size, limit, b->path, &b->memory, &unpacked));
    close(b->fd);
    b->fd = -1;
    b->size = (int64_t)unpacked;
    return EW_OK;
}

static ew_err open_file(struct ew_blob *b)
{
    struct stat st;
    EW_CHECK(fstat(b->fd, &st) == 0, EW_ERR_IO, "%s: %s", b->path, strerror(errno));
    b->size = st.st_size;
    uint8_t magic[2] = {0};
    if (b->size >= 18 && pread(b->fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b)
        return unpack(b);
    return EW_OK;
}

ew_err ew_blob_open(const char *path, struct ew_blob *b)
{
    *b = (struct ew_blob){.fd = -1};
    EW_TRY(ew_file_open(path, &b->fd));
    b->path = strdup(path);
    if (!b->path) {
        close(b->fd);
        return ew_fail(EW_ERR_MEMORY, "%s: no memory", path);
    }
    const ew_err err = open_file(b);
    if (err != EW_OK)
        ew_blob_close(b);
    return err;
}

/* ---- Reading --------------------------------------------------------------------------------- */

ew_err ew_blob_read(const struct ew_blob *b, int64_t at, int64_t n, void *to)
{
    if (b->memory) {
        EW_CHECK(at >= 0 && n >= 0 && at <= b->size - n, EW_ERR_FORMAT, "%s: has no byte %lld",
                 b->path, (long long)(at + n));
        memcpy(to, b->memory + at, (size_t)n);
        return EW_OK;
    }
    for (int64_t got = 0; got < n;) {
        const ssize_t k = pread(b->fd, (char *)to + got, (size_t)(n - got), (off_t)(at + got));
        if (k < 0 && errno == EINTR)
            continue;
        EW_CHECK(k >= 0, EW_ERR_IO, "%s: %s", b->path, strerror(errno));
        EW_CHECK(k > 0, EW_ERR_IO, "%s: ends at byte %lld, %lld are expected", b->path,
                 (long long)(at + got), (long long)(at + n));
        got += k;
    }
    return EW_OK;
}

ew_err ew_blob_fetch(const struct ew_blob *b, int64_t at, int64_t n, struct ew_sample *s)
{
    EW_TRY(ew_bytes_need(&s->raw, (size_t)n));
    EW_TRY(ew_blob_read(b, at, n, s->raw.at));
    s->position = at;
    s->bytes_read = b->memory ? 0 : n;
    s->ops_read = b->memory ? 0 : 1;
    return EW_OK;
}
