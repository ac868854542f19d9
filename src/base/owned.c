/* SPDX-License-Identifier: Apache-2.0 */
/* Owned folders. */
#include "base/owned.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"

#define MARK_HEAD "edgewise made this folder and may remove it: process "

/* ---- Making folders -------------------------------------------------------------------------- */

static ew_err make_one(const char *path)
{
    struct stat st;
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
        return EW_OK;
    return ew_fail(EW_ERR_IO, "%s: %s", path, strerror(errno == EEXIST ? ENOTDIR : errno));
}

ew_err ew_folder_make_parents(const char *path)
{
    char part[PATH_MAX];
    EW_CHECK(*path && strlen(path) < sizeof(part), EW_ERR_LIMIT,
             "%.60s: the path is empty or too long", path);
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        if (!slash[1])
            break;
        snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        EW_TRY(make_one(part));
    }
    return EW_OK;
}

ew_err ew_folder_make(const char *path)
{
    EW_TRY(ew_folder_make_parents(path));
    return make_one(path);
}

ew_err ew_folder_has_plain(const char *folder, const char *const *names)
{
    struct stat st;
    char path[PATH_MAX];
    for (; *names; names++) {
        const int n = snprintf(path, sizeof(path), "%s/%s", folder, *names);
        EW_CHECK(n > 0 && (size_t)n < sizeof(path), EW_ERR_LIMIT, "%.60s: the path is too long",
                 folder);
        EW_CHECK(lstat(path, &st) != 0 || S_ISREG(st.st_mode), EW_ERR_IO,
                 "%s: is no plain file; a run writes to none but its own", path);
    }
    return EW_OK;
}

ew_err ew_folder_lock(const char *path, int *fd)
{
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EW_CHECK(*fd >= 0, EW_ERR_IO, "%s: %s", path, strerror(errno));
    if (flock(*fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return EW_OK;
    close(*fd);
    *fd = -1;
    return ew_fail(EW_ERR_IO, "%s: another process is at work there", path);
}

/* ---- The marker ------------------------------------------------------------------------------ */

static ew_err mark_path(const char *folder, char out[PATH_MAX])
{
    const int n = snprintf(out, PATH_MAX, "%s/%s", folder, EW_OWNED_MARK);
    EW_CHECK(n < PATH_MAX, EW_ERR_LIMIT, "%.60s...: the path is too long", folder);
    return EW_OK;
}

/* A marker is locked while its process is at work: in another container or on another machine that
 * shares the disk, a process ID means nothing. */
#define MOST_LOCKS 64 /* further markers have the process ID alone */

static struct {
    pthread_mutex_t lock; /* guards all below */
    pid_t owner;          /* a forked child owns nothing of it */
    int n;
    int fd[MOST_LOCKS];
} marks = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock_marks(void)
{
    pthread_mutex_lock(&marks.lock);
    if (marks.owner != getpid())
        marks.n = 0;
    marks.owner = getpid();
}

static void keep_lock(int fd)
{
    lock_marks();
    const bool room = marks.n < MOST_LOCKS;
    if (room)
        marks.fd[marks.n++] = fd;
    pthread_mutex_unlock(&marks.lock);
    if (!room)
        close(fd);
}

/* Whether a marker is one that this process has locked; `drop` unlocks it. */
static bool is_our_lock(const struct stat *mark, bool drop)
{
    struct stat st;
    bool found = false;
    lock_marks();
    for (int i = 0; i < marks.n && !found; i++) {
        found =
            fstat(marks.fd[i], &st) == 0 && st.st_dev == mark->st_dev && st.st_ino == mark->st_ino;
        if (found && drop) {
            close(marks.fd[i]);
            marks.fd[i] = marks.fd[--marks.n];
        }
    }
    pthread_mutex_unlock(&marks.lock);
    return found;
}

static bool is_locked(const char *mark)
{
    const int fd = open(mark, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return locked;
}

static ew_err write_mark(const char *folder)
{
    char path[PATH_MAX], stamp[EW_STAMP_CHARS];
    struct ew_file_out o;
    EW_TRY(mark_path(folder, path));
    ew_process_stamp((int)getpid(), stamp);
    EW_TRY(ew_file_out_open(path, &o));
    const int fd = fcntl(fileno(o.f), F_DUPFD_CLOEXEC, 3); /* keeps the lock of the new file */
    fprintf(o.f, MARK_HEAD "%d %s\n", (int)getpid(), stamp);
    const ew_err err = ew_file_out_commit(&o);
    if (fd >= 0 && err == EW_OK)
        keep_lock(fd);
    else if (fd >= 0)
        close(fd);
    return err;
}

static void remove_mark(const char *path)
{
    struct stat st;
    if (lstat(path, &st) == 0 && unlink(path) == 0)
        is_our_lock(&st, true);
}

/* True if the folder has the marker; *holder is the running process that owns it (0: none). */
static bool read_mark(const char *folder, int *holder)
{
    char path[PATH_MAX], *text = NULL;
    size_t size;
    struct stat st;
    *holder = 0;
    if (mark_path(folder, path) != EW_OK || lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    if (ew_file_read(path, 4096, &text, &size) != EW_OK)
        return false;
    const size_t head = strlen(MARK_HEAD);
    const bool ours = strncmp(text, MARK_HEAD, head) == 0;
    if (ours && !is_our_lock(&st, false)) {
        char *stamp;
        const int pid = (int)strtol(text + head, &stamp, 10);
        stamp += *stamp == ' ';
        stamp[strcspn(stamp, "\n")] = '\0';
        if (is_locked(path) || (pid != (int)getpid() && ew_process_alive(pid, stamp)))
            *holder = pid > 0 ? pid : 1;
    }
    free(text);
    return ours;
}

/* ---- Owned folders --------------------------------------------------------------------------- */

/* The folder and its marker are removed last, so that an interrupted removal can be resumed. */
static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    if (at->level == 0 || (at->level == 1 && strcmp(path + at->base, EW_OWNED_MARK) == 0))
        return 0;
    return remove(path);
}

/* Removes what is in an owned folder, but not its marker. */
static bool empty(const char *path)
{
    return nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0;
}

bool ew_owned_remove(const char *path)
{
    char mark[PATH_MAX];
    struct stat st;
    int holder;
    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || !read_mark(path, &holder) || holder)
        return false;
    if (!empty(path) || mark_path(path, mark) != EW_OK)
        return false;
    remove_mark(mark);
    return rmdir(path) == 0;
}

bool ew_owned_remove_unmarked(const char *path)
{
    char mark[PATH_MAX];
    if (mark_path(path, mark) == EW_OK)
        ew_file_sweep(mark); /* killed while writing the marker */
    return rmdir(path) == 0;
}

static ew_err mark_new(const char *path)
{
    const ew_err err = write_mark(path);
    if (err != EW_OK)
        rmdir(path);
    return err;
}

ew_err ew_owned_make(const char *path)
{
    int holder = 0;
    EW_TRY(ew_folder_make_parents(path));
    if (mkdir(path, 0777) == 0)
        return mark_new(path);
    EW_CHECK(errno == EEXIST, EW_ERR_IO, "%s: %s", path, strerror(errno));
    const bool ours = read_mark(path, &holder);
    EW_CHECK(!holder, EW_ERR_IO, "%s: process %d is at work there", path, holder);
    EW_CHECK(ours ? ew_owned_remove(path) : ew_owned_remove_unmarked(path), EW_ERR_IO,
             "%s: exists, and is not a folder of Edgewise's own; it is left alone: move it away",
             path);
    EW_CHECK(mkdir(path, 0777) == 0, EW_ERR_IO, "%s: %s", path, strerror(errno));
    return mark_new(path);
}

static bool is_empty(const char *path)
{
    DIR *d = opendir(path);
    bool empty = d != NULL;
    for (const struct dirent *e; empty && (e = readdir(d));)
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    if (d)
        closedir(d);
    return empty;
}

ew_err ew_owned_fill(const char *path)
{
    char mark[PATH_MAX];
    int holder = 0;
    EW_TRY(mark_path(path, mark));
    if (mkdir(path, 0777) == 0)
        return mark_new(path);
    EW_CHECK(errno == EEXIST, EW_ERR_IO, "%s: %s", path, strerror(errno));
    const bool ours = read_mark(path, &holder);
    EW_CHECK(!holder, EW_ERR_IO, "%s: process %d is at work there", path, holder);
    if (!ours)
        ew_file_sweep(mark);
    EW_CHECK(ours ? empty(path) : is_empty(path), EW_ERR_IO, "%s: is not an empty folder", path);
    if (ours)
        remove_mark(mark);
    return write_mark(path);
}

void ew_owned_filled(const char *path, bool whole)
{
    char mark[PATH_MAX];
    if ((whole || empty(path)) && mark_path(path, mark) == EW_OK)
        remove_mark(mark);
}

ew_err ew_owned_publish(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return EW_OK;
    if (errno == EINVAL || errno == ENOSYS) { /* no RENAME_NOREPLACE: check, then rename */
        struct stat st;
        errno = lstat(to, &st) == 0 ? EEXIST : 0;
        if (errno == 0 && rename(from, to) == 0)
            return EW_OK;
    }
    return ew_fail(EW_ERR_IO, "%s: %s", to, strerror(errno));
}
