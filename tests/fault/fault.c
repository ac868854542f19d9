/* SPDX-License-Identifier: Apache-2.0 */
/* A library for LD_PRELOAD that lets the n-th allocation, or the n-th call that modifies files,
 * fail once: FAULT_KIND=alloc or io, FAULT_AT=n; FAULT_KIND=int sends Ctrl-C at this call, and
 * FAULT_KIND=kill SIGKILL (calls that remove files count too); FAULT_KIND=lock: a file system
 * without locks.
 * FAULT_COUNT=FILE receives the number of calls.  Child processes are not affected. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc's functions under their internal names. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static enum { OFF, ALLOC, IO, INTERRUPT, KILL, LOCK } kind;
static atomic_long at;
static long fail_at;
static int (*plain_fflush)(FILE *f);
static char count_file[512];

__attribute__((constructor)) static void begin(void)
{
    const char *k = getenv("FAULT_KIND"), *n = getenv("FAULT_AT"), *file = getenv("FAULT_COUNT");
    fail_at = n ? atol(n) : 0;
    snprintf(count_file, sizeof(count_file), "%s", file ? file : "");
    void *next = dlsym(RTLD_NEXT, "fflush");
    memcpy(&plain_fflush, &next, sizeof(next));
    unsetenv("LD_PRELOAD");
    unsetenv("FAULT_KIND");
    kind = !k                        ? OFF /* last: enables counting */
           : strcmp(k, "alloc") == 0 ? ALLOC
           : strcmp(k, "int") == 0   ? INTERRUPT
           : strcmp(k, "kill") == 0  ? KILL
           : strcmp(k, "lock") == 0  ? LOCK
                                     : IO;
}

__attribute__((destructor)) static void end(void)
{
    const long n = at;
    kind = OFF;
    FILE *f = count_file[0] ? fopen(count_file, "w") : NULL;
    if (f) {
        fprintf(f, "%ld\n", n);
        fclose(f);
    }
}

static int fails(int of)
{
    if (((int)kind == INTERRUPT || (int)kind == KILL) && of == IO &&
        atomic_fetch_add(&at, 1) + 1 == fail_at)
        raise((int)kind == KILL ? SIGKILL : SIGINT);
    return (int)kind == of && atomic_fetch_add(&at, 1) + 1 == fail_at;
}

/* ---- Memory ---- */

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t n)
{
    return fails(ALLOC) ? no_memory() : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return fails(ALLOC) ? no_memory() : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return fails(ALLOC) ? no_memory() : __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    return fails(ALLOC) ? no_memory() : __libc_memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n)
{
    void *p = fails(ALLOC) ? NULL : __libc_memalign(align, n);
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

void *mmap(void *addr, size_t n, int prot, int flags, int fd, off_t offset)
{
    if ((flags & MAP_ANONYMOUS) && fails(ALLOC)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, addr, n, prot, flags, fd, offset);
}

/* ---- Disks ---- */

#define DISK(name, params, call)                                                                   \
    int name params                                                                                \
    {                                                                                              \
        if (fails(IO)) {                                                                           \
            errno = ENOSPC;                                                                        \
            return -1;                                                                             \
        }                                                                                          \
        return (int)(call);                                                                        \
    }

DISK(fsync, (int fd), syscall(SYS_fsync, fd))
DISK(fdatasync, (int fd), syscall(SYS_fdatasync, fd))
DISK(syncfs, (int fd), syscall(SYS_syncfs, fd))
DISK(ftruncate, (int fd, off_t n), syscall(SYS_ftruncate, fd, n))
DISK(ftruncate64, (int fd, off_t n), syscall(SYS_ftruncate, fd, n))
DISK(mkdir, (const char *path, mode_t mode), syscall(SYS_mkdirat, AT_FDCWD, path, mode))
DISK(rename, (const char *a, const char *b), syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 0))
DISK(renameat2, (int a, const char *from, int b, const char *to, unsigned flags),
     syscall(SYS_renameat2, a, from, b, to, flags))

int flock(int fd, int operation)
{
    if ((int)kind == LOCK) {
        errno = ENOSYS;
        return -1;
    }
    return (int)syscall(SYS_flock, fd, operation);
}

#define REMOVAL(name, params, call)                                                                \
    int name params                                                                                \
    {                                                                                              \
        if ((int)kind == KILL)                                                                     \
            fails(IO);                                                                             \
        return (int)(call);                                                                        \
    }

REMOVAL(unlink, (const char *path), syscall(SYS_unlinkat, AT_FDCWD, path, 0))
REMOVAL(rmdir, (const char *path), syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR))

/* Writes of streams happen inside the C library; their failure is injected here. */
int fflush(FILE *f)
{
    if (f && f != stderr && fails(IO)) {
        errno = ENOSPC;
        return EOF;
    }
    return plain_fflush(f);
}

static int to_disk(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

ssize_t write(int fd, const void *data, size_t n)
{
    if (to_disk(fd) && fails(IO)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_write, fd, data, n);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t offset)
{
    if (fails(IO)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, data, n, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off_t offset)
{
    return pwrite(fd, data, n, offset);
}
