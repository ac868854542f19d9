/* SPDX-License-Identifier: Apache-2.0 */
/* Reading below a root.  Links are resolved here rather than by openat2(RESOLVE_IN_ROOT), which
 * the 4.9 kernels of older boards lack. */
#include "base/rootfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"

#define MAX_LINKS 40 /* the kernel's limit */

static ew_err failed(const struct ew_root *r, const char *path)
{
    const ew_err code = errno == ENOENT || errno == ENOTDIR ? EW_ERR_NOT_FOUND : EW_ERR_IO;
    const char *slash = path[0] == '/' ? "" : "/";
    const char *root = strcmp(r->path, "/") == 0 ? "" : r->path;
    return ew_fail(code, "%s%s%s: %s", root, slash, path, strerror(errno));
}

ew_err ew_root_open(const char *path, struct ew_root *out)
{
    out->path = path;
    out->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    EW_CHECK(out->fd >= 0, errno == ENOENT ? EW_ERR_NOT_FOUND : EW_ERR_IO, "%s: %s", path,
             strerror(errno));
    return EW_OK;
}

void ew_root_close(struct ew_root *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
}

/* ---- Resolving ------------------------------------------------------------------------------- */

/* Path resolution: `done` is resolved, `rest` is not yet. */
struct walk {
    char done[PATH_MAX];
    char rest[PATH_MAX];
    int links;
};

static bool fail_with(int code)
{
    errno = code;
    return false;
}

/* "a/b" -> "a"; false at the top, which would leave the root. */
static bool go_up(struct walk *w)
{
    if (!w->done[0])
        return fail_with(EXDEV);
    char *slash = strrchr(w->done, '/');
    *(slash ? slash : w->done) = '\0';
    return true;
}

/* Prepends a link's target to the unresolved rest. */
static bool follow(struct walk *w, const char *target)
{
    char rest[PATH_MAX];
    if (++w->links > MAX_LINKS)
        return fail_with(ELOOP);
    const size_t a = strlen(target), b = strlen(w->rest);
    if (a + b + 2 > sizeof(rest))
        return fail_with(ENAMETOOLONG);
    memcpy(rest, target, a);
    rest[a] = '/';
    memcpy(rest + a + 1, w->rest, b + 1);
    memcpy(w->rest, rest, a + b + 2);
    if (target[0] == '/')
        w->done[0] = '\0';
    return true;
}

static bool go_down(const struct ew_root *r, struct walk *w, const char *name)
{
    const size_t before = strlen(w->done), n = strlen(name);
    if (before + n + 2 > sizeof(w->done))
        return fail_with(ENAMETOOLONG);
    const size_t at = before + (before > 0);
    if (before)
        w->done[before] = '/';
    memcpy(w->done + at, name, n + 1);
    char target[PATH_MAX];
    const ssize_t len = readlinkat(r->fd, w->done, target, sizeof(target) - 1);
    if (len < 0)
        return errno == EINVAL; /* exists, and is no link */
    target[len] = '\0';
    w->done[before] = '\0';
    return follow(w, target);
}

/* Removes the first name from the rest; false: empty. */
static bool next_name(struct walk *w, char name[NAME_MAX + 1], bool *too_long)
{
    const char *p = w->rest + strspn(w->rest, "/");
    const size_t n = strcspn(p, "/");
    *too_long = n > NAME_MAX;
    if (n == 0 || *too_long)
        return false;
    memcpy(name, p, n);
    name[n] = '\0';
    memmove(w->rest, p + n, strlen(p + n) + 1);
    return true;
}

/* Opens `path` below the root; -1 and errno on failure, EXDEV where it would leave the root. */
static int open_below(const struct ew_root *r, const char *path, int flags)
{
    struct walk w = {.links = 0};
    const size_t n = strlen(path);
    if (n >= sizeof(w.rest)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(w.rest, path, n + 1);
    char name[NAME_MAX + 1];
    bool too_long = false;
    while (next_name(&w, name, &too_long)) {
        const bool stay = strcmp(name, ".") == 0, up = strcmp(name, "..") == 0;
        if (!stay && !(up ? go_up(&w) : go_down(r, &w, name)))
            return -1;
    }
    if (too_long) {
        errno = ENAMETOOLONG;
        return -1;
    }
    /* O_NONBLOCK: a pipe in a captured board is opened, or refused, at once. */
    return openat(r->fd, w.done[0] ? w.done : ".", flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* ---- Reading --------------------------------------------------------------------------------- */

bool ew_root_has(const struct ew_root *r, const char *path)
{
    const int fd = open_below(r, path, O_PATH);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

ew_err ew_root_open_file(const struct ew_root *r, const char *path, int flags, int *fd)
{
    *fd = open_below(r, path, flags & ~O_CREAT);
    if (*fd >= 0)
        return EW_OK;
    const int reason = errno;
    const ew_err err = failed(r, path);
    errno = reason;
    return err;
}

/* All of a small file; -1 and errno on failure. */
static ssize_t read_small(int fd, char *buf, size_t size)
{
    size_t used = 0;
    while (used < size) {
        const ssize_t n = read(fd, buf + used, size - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            return (ssize_t)used;
        used += (size_t)n;
    }
    errno = EFBIG;
    return -1;
}

ew_err ew_root_read(const struct ew_root *r, const char *path, char *buf, size_t size)
{
    const int fd = open_below(r, path, O_RDONLY);
    if (fd < 0)
        return failed(r, path);
    ssize_t n = read_small(fd, buf, size);
    const int reason = errno;
    close(fd);
    errno = reason;
    if (n < 0) {
        const ew_err err = failed(r, path);
        return reason == EFBIG ? EW_ERR_LIMIT : err;
    }
    while (n > 0 && isspace((unsigned char)buf[n - 1]))
        n--;
    buf[n] = '\0';
    return EW_OK;
}

ew_err ew_root_read_int(const struct ew_root *r, const char *path, int64_t *out)
{
    char text[64];
    EW_TRY(ew_root_read(r, path, text, sizeof(text)));
    EW_CHECK(ew_num_int(text, out), EW_ERR_FORMAT, "%s: '%s' is not a whole number", path, text);
    return EW_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static ew_err read_names(DIR *dir, struct ew_arena *a, void **list, int *n)
{
    int cap = 0;
    *n = 0;
    for (const struct dirent *e; (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        EW_TRY(ew_grow(list, &cap, *n + 1, sizeof(char *)));
        const char *name = ew_arena_strdup(a, e->d_name);
        EW_CHECK(name, EW_ERR_MEMORY, "no memory for a list of files");
        ((const char **)*list)[(*n)++] = name;
    }
    return EW_OK;
}

ew_err ew_root_list(const struct ew_root *r, const char *path, struct ew_arena *a,
                    const char *const **names, int *n)
{
    const int fd = open_below(r, path, O_RDONLY | O_DIRECTORY);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        const ew_err err = failed(r, path);
        if (fd >= 0)
            close(fd);
        return err;
    }
    EW_CLEANUP(ew_free_ptr) void *list = NULL;
    const ew_err err = read_names(dir, a, &list, n);
    closedir(dir);
    EW_TRY(err);
    const char **kept = ew_arena_array(a, (size_t)*n + 1, sizeof(*kept));
    EW_CHECK(kept, EW_ERR_MEMORY, "%s: no memory for %d names", path, *n);
    if (*n) {
        memcpy(kept, list, (size_t)*n * sizeof(*kept));
        qsort(kept, (size_t)*n, sizeof(*kept), by_name);
    }
    *names = kept;
    return EW_OK;
}
