/* SPDX-License-Identifier: Apache-2.0 */
/* The files that SQLite keeps beside a database; a stranger's folder may hold them too. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/store_impl.h"

#define NAME_BYTES (PATH_MAX + 16)

static void close_fd(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static bool beside(const char *path, const char *suffix, char out[NAME_BYTES])
{
    EW_CLEANUP(ew_free_ptr) char *real = realpath(path, NULL); /* as SQLite names them */
    const int n = real ? snprintf(out, NAME_BYTES, "%s%s", real, suffix) : -1;
    return n > 0 && n < NAME_BYTES;
}

/* A journal of changes to several databases ends in the name of another journal, its length, a sum
 * and this mark (https://www.sqlite.org/src, pager.c, readSuperJournal). */
static bool names_another(const char *journal)
{
    static const unsigned char mark[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    EW_CLEANUP(close_fd)
    const int fd = open(journal, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    unsigned char end[16];
    const off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    return size >= (off_t)sizeof(end) &&
           pread(fd, end, sizeof(end), size - (off_t)sizeof(end)) == (ssize_t)sizeof(end) &&
           memcmp(end + 8, mark, sizeof(mark)) == 0 && (end[0] | end[1] | end[2] | end[3]);
}

ew_err ew_store_check_beside(const char *path)
{
    static const char *const suffixes[] = {"-journal", "-wal", "-shm"};
    char name[NAME_BYTES];
    struct stat st;
    for (size_t i = 0; i < EW_COUNT(suffixes); i++) {
        if (!beside(path, suffixes[i], name) || lstat(name, &st) != 0)
            continue;
        EW_CHECK(S_ISREG(st.st_mode), EW_ERR_IO, "%s: is no plain file", name);
        EW_CHECK(i > 0 || !names_another(name), EW_ERR_FORMAT,
                 "%s: names another file, which SQLite would delete; results have no such journal",
                 name);
    }
    return EW_OK;
}

bool ew_store_has_log(const char *path)
{
    static const char *const suffixes[] = {"-wal", "-journal"};
    char name[NAME_BYTES];
    struct stat st;
    for (size_t i = 0; i < EW_COUNT(suffixes); i++)
        if (!beside(path, suffixes[i], name) || (stat(name, &st) == 0 && st.st_size > 0))
            return true;
    return false;
}
