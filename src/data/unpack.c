/* SPDX-License-Identifier: Apache-2.0 */
/* gzip and tar files.  Sheets of images are in image_sheets.c. */
#include "data/unpack.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "data/blob.h"
#include "data/reader.h"

#if EW_HAVE_ZLIB
#include <zlib.h>

#define BLOCK      512 /* bytes: tar's unit */
#define COPY_BYTES (32 << 10)

/* A file read through zlib, which passes plain files unchanged. */
struct packed {
    gzFile g;
    const char *path;
    int64_t limit, read; /* limit of unpacked bytes, and bytes so far */
};

static void close_packed(struct packed *p)
{
    if (p->g)
        gzclose(p->g);
}

static ew_err open_packed(const char *path, struct packed *out)
{
    int fd;
    struct stat st;
    EW_TRY(ew_file_open(path, &fd));
    const bool known = fstat(fd, &st) == 0;
    out->path = path;
    out->limit = known ? (int64_t)ew_gunzip_limit((size_t)st.st_size) : 0;
    out->g = gzdopen(fd, "rb");
    if (!out->g) {
        close(fd);
        return ew_fail(EW_ERR_MEMORY, "%s: no memory to read it", path);
    }
    gzbuffer(out->g, COPY_BYTES);
    return EW_OK;
}

static ew_err gz_failed(const struct packed *p)
{
    int code = 0;
    const char *why = gzerror(p->g, &code);
    return ew_fail(EW_ERR_FORMAT, "%s: %s", p->path, code == Z_OK ? "ends early" : why);
}

/* Up to n bytes; *got is 0 at the end. */
static ew_err read_some(struct packed *p, int64_t n, uint8_t *to, int *got)
{
    *got = gzread(p->g, to, (unsigned)n);
    if (*got < 0)
        return gz_failed(p);
    p->read += *got;
    EW_CHECK(p->read <= p->limit, EW_ERR_LIMIT, "%s: inflates to more than %lld bytes", p->path,
             (long long)p->limit);
    return EW_OK;
}

static ew_err copy_to(struct packed *p, int64_t n, struct ew_file_out *o)
{
    uint8_t buf[COPY_BYTES];
    int got = 1, code = 0;
    for (int64_t left = n; left != 0 && got > 0; left -= n < 0 ? 0 : got) {
        EW_TRY(read_some(p, n < 0 || left > COPY_BYTES ? COPY_BYTES : left, buf, &got));
        if (got == 0 && n > 0)
            return gz_failed(p);
        EW_CHECK(fwrite(buf, 1, (size_t)got, o->f) == (size_t)got, EW_ERR_IO, "%s: %s", o->path,
                 strerror(errno));
    }
    gzerror(p->g, &code); /* detects a truncated stream */
    return code < 0 ? gz_failed(p) : EW_OK;
}

/* Copies `n` bytes (n < 0: all) to a file. */
static ew_err copy(struct packed *p, int64_t n, const char *to)
{
    struct ew_file_out o;
    EW_TRY(ew_file_out_open(to, &o));
    const ew_err err = copy_to(p, n, &o);
    if (err != EW_OK) {
        ew_file_out_abort(&o);
        return err;
    }
    return ew_file_out_commit(&o);
}

ew_err ew_unpack_gzip(const char *from, const char *to)
{
    EW_CLEANUP(close_packed) struct packed p = {0};
    EW_TRY(open_packed(from, &p));
    return copy(&p, -1, to);
}

/* ---- tar (POSIX 1003.1, "ustar") ------------------------------------------------------------- */

/* Octal, or base 256 if the first bit is set (GNU). */
static int64_t number(const uint8_t *p, int n)
{
    int64_t v = 0;
    if (p[0] & 0x80) {
        for (int i = n - 7; i < n; i++)
            v = v << 8 | p[i];
        return v;
    }
    for (int i = 0; i < n && p[i]; i++)
        if (p[i] >= '0' && p[i] <= '7')
            v = v * 8 + (p[i] - '0');
    return v;
}

static bool header_ok(const uint8_t *h)
{
    int64_t sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : h[i];
    return sum == number(h + 148, 8);
}

static bool is_wanted(const char *name, const char *const *wanted)
{
    for (; *wanted; wanted++) {
        const size_t n = strlen(*wanted);
        if (strncmp(name, *wanted, n) == 0 && (!name[n] || strcmp(name + n, ".gz") == 0))
            return true;
    }
    return false;
}

static ew_err skip(struct packed *p, int64_t n)
{
    uint8_t buf[8192];
    for (int got; n > 0; n -= got) {
        EW_TRY(read_some(p, n < 8192 ? n : 8192, buf, &got));
        if (got == 0)
            return gz_failed(p);
    }
    return EW_OK;
}

/* Processes one member; *end: no more. */
static ew_err member(struct packed *p, const char *const *wanted, const char *dir, int *found,
                     bool *end)
{
    uint8_t h[BLOCK];
    int got;
    EW_TRY(read_some(p, BLOCK, h, &got));
    *end = got == 0 || (got == BLOCK && h[0] == 0);
    if (*end)
        return EW_OK;
    EW_CHECK(got == BLOCK && header_ok(h), EW_ERR_FORMAT, "%s: not a tar file, or damaged",
             p->path);
    const int64_t size = number(h + 124, 12);
    EW_CHECK(size >= 0 && size <= (int64_t)1 << 40, EW_ERR_FORMAT, "%s: a member of %lld bytes",
             p->path, (long long)size);
    char name[101] = "";
    memcpy(name, h, 100);
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const int64_t padding = (BLOCK - size % BLOCK) % BLOCK;
    if ((h[156] == '0' || h[156] == '\0') && is_wanted(base, wanted)) {
        char to[EW_DATA_PATH];
        EW_CHECK(ew_data_join(to, dir, base), EW_ERR_LIMIT, "%s: too long a path", dir);
        EW_TRY(copy(p, size, to));
        (*found)++;
        return skip(p, padding);
    }
    return skip(p, size + padding);
}

ew_err ew_unpack_tar(const char *from, const char *const *wanted, const char *dir, int *found)
{
    EW_CLEANUP(close_packed) struct packed p = {0};
    EW_TRY(open_packed(from, &p));
    *found = 0;
    for (bool end = false; !end;)
        EW_TRY(member(&p, wanted, dir, found, &end));
    return EW_OK;
}
#else
static ew_err missing(const char *from)
{
    return ew_fail(EW_ERR_UNSUPPORTED, "%s: this build unpacks no files (EW_ZLIB)", from);
}

/* without zlib plain files can still be copied */
ew_err ew_unpack_gzip(const char *from, const char *to)
{
    EW_CLEANUP(ew_free_ptr) char *bytes = NULL;
    size_t size;
    EW_TRY(ew_file_read(from, (size_t)4 << 30, &bytes, &size));
    if (size >= 2 && memcmp(bytes, "\x1f\x8b", 2) == 0)
        return missing(from);
    return ew_file_write(to, bytes, size);
}

ew_err ew_unpack_tar(const char *from, const char *const *wanted, const char *dir, int *found)
{
    return missing(from);
}
#endif
