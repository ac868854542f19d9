/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and atomic replacement of whole files. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define FIRST_BYTES ((size_t)64 << 10) /* for files of unknown size */

static ew_err failed(const char *path)
{
    const bool lack = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    const ew_err code = errno == ENOENT ? EW_ERR_NOT_FOUND : lack ? EW_ERR_MEMORY : EW_ERR_IO;
    return ew_fail(code, "%s: %s", path, strerror(errno));
}

/* Why a new file could not be opened. */
static ew_err unmade(const char *path)
{
    const int code = errno;
    const char *slash = strrchr(path, '/');
    struct stat st;
    char folder[4096];
    if (code == ENOENT && slash && slash > path && slash - path < (int64_t)sizeof(folder)) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
        EW_CHECK(stat(folder, &st) == 0, EW_ERR_NOT_FOUND, "%s: there is no folder %s", path,
                 folder);
    }
    errno = code;
    return failed(path);
}

static void close_fd(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Reads up to `room` bytes; fewer only at the end of the file. */
static ew_err read_some(int fd, const char *name, char *to, size_t room, size_t *got)
{
    *got = 0;
    while (*got < room) {
        const ssize_t n = read(fd, to + *got, room - *got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(name);
        if (n == 0)
            break;
        *got += (size_t)n;
    }
    return EW_OK;
}

ew_err ew_file_read_fd(int fd, const char *name, size_t limit, char **data, size_t *size)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return failed(name);
    EW_CHECK(!S_ISDIR(st.st_mode), EW_ERR_IO, "%s: is a folder", name);
    const bool known = S_ISREG(st.st_mode) && st.st_size > 0;
    EW_CHECK(!known || (uint64_t)st.st_size <= limit, EW_ERR_LIMIT,
             "%s: %lld bytes, more than the limit of %zu", name, (long long)st.st_size, limit);

    /* one byte more than expected, to detect the end; it becomes the NUL */
    size_t cap = (known ? (size_t)st.st_size : FIRST_BYTES) + 1;
    size_t used = 0;
    EW_CLEANUP(ew_free_ptr) char *buf = malloc(cap);
    EW_CHECK(buf, EW_ERR_MEMORY, "%s: no memory for %zu bytes", name, cap);
    for (;;) {
        size_t got;
        EW_TRY(read_some(fd, name, buf + used, cap - used, &got));
        used += got;
        EW_CHECK(used <= limit, EW_ERR_LIMIT, "%s: more than the limit of %zu bytes", name, limit);
        if (used < cap)
            break;
        size_t more;
        char *p = ew_mul_size(cap, 2, &more) ? realloc(buf, more) : NULL;
        EW_CHECK(p, EW_ERR_MEMORY, "%s: no memory for more than %zu bytes", name, cap);
        buf = p;
        cap = more;
    }
    buf[used] = '\0';
    *data = buf;
    *size = used;
    buf = NULL;
    return EW_OK;
}

/* Opening a pipe without a writer would block, and a device may have side effects. */
ew_err ew_file_open(const char *path, int *out)
{
    struct stat st;
    *out = -1;
    EW_CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) != 0)
        return failed(path);
    EW_CHECK(!S_ISDIR(st.st_mode), EW_ERR_IO, "%s: is a folder", path);
    EW_CHECK(S_ISREG(st.st_mode), EW_ERR_IO, "%s: is a pipe or a device, not a regular file", path);
    *out = fd;
    fd = -1;
    return EW_OK;
}

size_t ew_file_head(const char *path, void *to, size_t room)
{
    int fd;
    size_t got = 0;
    if (ew_file_open(path, &fd) != EW_OK)
        return 0;
    const ew_err err = read_some(fd, path, to, room, &got);
    close(fd);
    return err == EW_OK ? got : 0;
}

ew_err ew_file_read(const char *path, size_t limit, char **data, size_t *size)
{
    EW_CLEANUP(close_fd) int fd;
    EW_TRY(ew_file_open(path, &fd));
    return ew_file_read_fd(fd, path, limit, data, size);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void release(struct ew_file_out *o)
{
    free(o->path);
    free(o->temp);
    *o = (struct ew_file_out){0};
}

void ew_file_out_abort(struct ew_file_out *o)
{
    if (o->f)
        fclose(o->f);
    if (o->temp)
        unlink(o->temp);
    release(o);
}

#define MOST_TEMPS 100 /* concurrent writers of one file, and leftovers */

/* The n-th temporary name for `path`. */
static char *temp_name(const char *path, int n)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char *name = NULL;
    if (asprintf(&name, "%.*s%.*s.edgewise-%d.tmp", (int)(base - path), path, NAME_MAX - 24, base,
                 n) < 0)
        return NULL;
    return name;
}

static bool is_named(int fd, const char *name)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && lstat(name, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Removes a temporary file that is not locked, so that its writer is dead.  False: no such file, or
 * in use. */
static bool remove_leftover(const char *name)
{
    EW_CLEANUP(close_fd) int fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
           flock(fd, LOCK_EX | LOCK_NB) == 0 && is_named(fd, name) && unlink(name) == 0;
}

/* Creates a temporary file, locked if the file system supports it; -1 with EEXIST: in use. */
static int create_temp(const char *name)
{
    for (int tries = 0; tries < 8; tries++) {
        const int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            return -1;
        if (fd < 0 && remove_leftover(name))
            continue;
        if (fd < 0)
            break;
        /* between create and lock another process may have removed it as a leftover */
        if ((flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && is_named(fd, name))
            return fd;
        close(fd);
    }
    errno = EEXIST;
    return -1;
}

/* Removes leftovers from number `first` on, up to the first unused one. */
static void sweep_from(const char *path, int first)
{
    for (int i = first; i < MOST_TEMPS; i++) {
        EW_CLEANUP(ew_free_ptr) char *name = temp_name(path, i);
        if (!name || access(name, F_OK) != 0)
            return;
        remove_leftover(name);
    }
}

static int open_temp(const char *path, char **temp)
{
    for (int i = 0; i < MOST_TEMPS; i++) {
        *temp = temp_name(path, i);
        if (!*temp) {
            errno = ENOMEM;
            return -1;
        }
        const int fd = create_temp(*temp);
        if (fd >= 0) {
            sweep_from(path, i + 1); /* leftovers of concurrent writers */
            return fd;
        }
        const int reason = errno;
        free(*temp);
        *temp = NULL;
        errno = reason;
        if (reason != EEXIST)
            return -1;
    }
    return -1;
}

void ew_file_sweep(const char *path)
{
    sweep_from(path, 0);
    sweep_from(path, 1); /* other numbers may be leftovers too */
}

ew_err ew_file_out_replace(const char *path, struct ew_file_out *o)
{
    *o = (struct ew_file_out){0};
    struct stat st;
    const bool exists = lstat(path, &st) == 0;
    EW_CHECK(!exists || !S_ISDIR(st.st_mode), EW_ERR_IO, "%s: is a folder", path);
    o->path = strdup(path);
    const int fd = o->path ? open_temp(o->path, &o->temp) : -1;
    o->f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (!o->f) {
        const ew_err err = unmade(path);
        close_fd(&fd);
        ew_file_out_abort(o);
        return err;
    }
    if (exists && S_ISREG(st.st_mode))
        (void)!fchmod(fd, st.st_mode & 07777);
    return EW_OK;
}

ew_err ew_file_out_open(const char *path, struct ew_file_out *o)
{
    *o = (struct ew_file_out){0};
    struct stat st;
    const bool exists = stat(path, &st) == 0;
    EW_CHECK(!exists || !S_ISDIR(st.st_mode), EW_ERR_IO, "%s: is a folder", path);
    /* replaces the target of a symbolic link, not the link */
    o->path = exists ? realpath(path, NULL) : strdup(path);
    if (!o->path)
        return failed(path);
    const bool direct = exists && !S_ISREG(st.st_mode);
    const int fd = direct ? open(o->path, O_WRONLY | O_CLOEXEC) : open_temp(o->path, &o->temp);
    o->f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (!o->f) {
        const ew_err err = unmade(path);
        close_fd(&fd);
        ew_file_out_abort(o);
        return err;
    }
    if (exists && !direct)
        (void)!fchmod(fd,
                      st.st_mode & 07777); /* best effort: the old file may have another owner */
    return EW_OK;
}

ew_err ew_file_out_check(const char *path)
{
    struct ew_file_out o;
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return EW_OK; /* opening a pipe would wait for its reader */
    EW_TRY(ew_file_out_open(path, &o));
    ew_file_out_abort(&o);
    return EW_OK;
}

/* Syncs the folder, so that the rename is durable; not all file systems support it. */
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    EW_CLEANUP(ew_free_ptr)
    char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (!dir)
        return;
    EW_CLEANUP(close_fd) const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        (void)!fsync(fd);
}

/* Writes out what is buffered, and closes. */
static ew_err finish(struct ew_file_out *o)
{
    bool ok = fflush(o->f) == 0 && !ferror(o->f) && (!o->temp || fsync(fileno(o->f)) == 0);
    int reason = errno;
    if (fclose(o->f) != 0 && ok) {
        ok = false;
        reason = errno;
    }
    o->f = NULL;
    EW_CHECK(ok, EW_ERR_IO, "%s: %s", o->path, strerror(reason));
    return EW_OK;
}

static ew_err appear(const struct ew_file_out *o)
{
    EW_CHECK(!o->temp || rename(o->temp, o->path) == 0, EW_ERR_IO, "%s: %s", o->path,
             strerror(errno));
    return EW_OK;
}

static ew_err end(struct ew_file_out *o, ew_err err)
{
    if (err != EW_OK) {
        ew_file_out_abort(o);
        return err;
    }
    if (o->temp)
        sync_folder(o->path);
    release(o);
    return EW_OK;
}

ew_err ew_file_out_commit(struct ew_file_out *o)
{
    ew_err err = finish(o);
    if (err == EW_OK)
        err = appear(o);
    return end(o, err);
}

ew_err ew_file_out_commit_both(struct ew_file_out *beside, struct ew_file_out *o)
{
    ew_err err = finish(beside);
    if (err == EW_OK)
        err = finish(o);
    if (err == EW_OK && o->temp)
        (void)!unlink(o->path);
    if (err == EW_OK)
        err = appear(beside);
    if (err == EW_OK)
        err = appear(o);
    end(beside, err);
    return end(o, err);
}

static ew_err write_out(struct ew_file_out *o, const void *data, size_t size)
{
    if (size)
        fwrite(data, 1, size, o->f); /* errors are reported by commit */
    return ew_file_out_commit(o);
}

ew_err ew_file_write(const char *path, const void *data, size_t size)
{
    struct ew_file_out o;
    EW_TRY(ew_file_out_open(path, &o));
    return write_out(&o, data, size);
}

ew_err ew_file_replace(const char *path, const void *data, size_t size)
{
    struct ew_file_out o;
    EW_TRY(ew_file_out_replace(path, &o));
    return write_out(&o, data, size);
}

bool ew_memstream_close(FILE *f, char **text)
{
    const bool bad = ferror(f) != 0;
    const bool closed = fclose(f) == 0;
    if (!bad && closed && *text)
        return true;
    free(*text);
    *text = NULL;
    return false;
}
