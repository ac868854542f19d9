/* SPDX-License-Identifier: Apache-2.0 */
/* Reading lines from other programs without blocking. */
#include "device/line_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define END_WAIT_MS 2000 /* for a command that was asked to end */

/* Whether the command's first word is a program in PATH.  Other commands (assignments, lists, shell
 * built-ins) are left to the shell. */
static bool can_start(const char *command)
{
    static const char *const words[] = {"cd",  "eval", "exec",  "export", "for",  "if",
                                        "set", "trap", "until", "while",  "umask"};
    char word[256], path[4096];
    const size_t n = strcspn(command, " \t\n");
    if (n >= sizeof(word) || strcspn(command, "=;|&$`(){}<>\"'\\!#*?[~") < n)
        return true;
    snprintf(word, sizeof(word), "%.*s", (int)n, command);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    if (strchr(word, '/'))
        return access(word, X_OK) == 0;
    const char *dir = getenv("PATH");
    for (const char *end; dir && *dir; dir = *end ? end + 1 : end) {
        end = strchrnul(dir, ':');
        snprintf(path, sizeof(path), "%.*s/%s", (int)(end - dir), dir, word);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* The command gets a process group of its own, so that all of it can be ended. */
static ew_err start(const char *command, struct ew_line_reader *f)
{
    EW_CHECK(can_start(command), EW_ERR_NOT_FOUND, "%s: no such file, pipe or command", command);
    const char *const argv[] = {"sh", "-c", command, NULL};
    const struct ew_spawn_opts o = {
        .path = "/bin/sh", .stream = {[STDOUT_FILENO] = EW_STREAM_PIPE}, .group = true};
    EW_TRY(ew_spawn(argv, &o, &f->command));
    f->fd = f->command.fd[STDOUT_FILENO];
    f->command.fd[STDOUT_FILENO] = -1;
    return EW_OK;
}

/* Whether the file is a program, to be run instead of read.  Some file systems mark every file as
 * executable, so its first bytes count too.
 */
static bool is_program(const char *path, const struct stat *st)
{
    char head[2] = "";
    if (!S_ISREG(st->st_mode) || access(path, X_OK) != 0 || !strchr(path, '/'))
        return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, head, sizeof(head)) : 0;
    if (fd >= 0)
        close(fd);
    return n == 2 && (memcmp(head, "#!", 2) == 0 || memcmp(head, "\177E", 2) == 0);
}

ew_err ew_line_reader_open(const char *from, bool whole, struct ew_line_reader *f)
{
    *f = (struct ew_line_reader){.fd = -1};
    ew_line_reader_begin(f);
    struct stat st;
    if (strcmp(from, "-") == 0) {
        f->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    } else if (whole || (stat(from, &st) == 0 && !is_program(from, &st))) {
        /* opening a pipe without a writer must not block */
        f->fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (f->fd >= 0 && !whole && S_ISREG(st.st_mode))
            lseek(f->fd, 0, SEEK_END);
    } else {
        return start(from, f);
    }
    EW_CHECK(f->fd >= 0, EW_ERR_IO, "%s: %s", from, strerror(errno));
    return EW_OK;
}

void ew_line_reader_wait(const struct ew_line_reader *f, int ms)
{
    struct pollfd p = {.fd = f->fd, .events = POLLIN};
    poll(&p, 1, ms);
}

/* Reads available bytes; false: none. */
static bool fill(struct ew_line_reader *f)
{
    if (f->used == sizeof(f->buf))
        f->used = 0; /* no newline in the whole buffer: drop it */
    struct pollfd p = {.fd = f->fd, .events = POLLIN};
    if (f->ended || f->left == 0 || poll(&p, 1, 0) <= 0)
        return false;
    const size_t room = sizeof(f->buf) - f->used;
    const ssize_t n = read(f->fd, f->buf + f->used, room < f->left ? room : f->left);
    struct stat st;
    if (n == 0 && fstat(f->fd, &st) == 0 && S_ISFIFO(st.st_mode) && f->command.pid)
        f->ended = true; /* the command is over; a named pipe may get another writer */
    if (n <= 0)
        return false;
    f->used += (size_t)n;
    f->left -= (size_t)n;
    return true;
}

void ew_line_reader_begin(struct ew_line_reader *f)
{
    f->left = EW_LINE_READER_MOST;
}

bool ew_line_reader_next(struct ew_line_reader *f, char *line, size_t size)
{
    char *end;
    while (!(end = memchr(f->buf, '\n', f->used)))
        if (!fill(f))
            return false;
    const size_t n = (size_t)(end - f->buf);
    snprintf(line, size, "%.*s", (int)n, f->buf);
    f->used -= n + 1;
    memmove(f->buf, end + 1, f->used);
    return true;
}

void ew_line_reader_close(struct ew_line_reader *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    if (f->command.pid > 0)
        ew_spawn_end(&f->command, END_WAIT_MS);
}
