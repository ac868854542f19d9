/* SPDX-License-Identifier: Apache-2.0 */
/* Forked servers (base/spawn.h). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/spawn.h"

/* ---- Starting and ending ---- */

static void close_others(int fd)
{
#ifdef SYS_close_range
    if (fd > 3)
        syscall(SYS_close_range, 3u, (unsigned)fd - 1, 0u);
    if (syscall(SYS_close_range, (unsigned)fd + 1, ~0u, 0u) == 0)
        return;
#endif
    for (int i = 3; i < 4096; i++)
        if (i != fd)
            close(i);
}

/* Signals meant for the whole group (by a terminal, systemd or Slurm) are the parent's: it may
 * still need an answer to end in order, and a server ends with its socket. */
static sigset_t hold_signals(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};
    sigset_t set, before;
    sigfillset(&set);
    for (size_t i = 0; i < EW_COUNT(faults); i++)
        sigdelset(&set, faults[i]);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    return before;
}

/* In the child. */
static void serve(void (*f)(int socket, void *arg), void *arg, int socket)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0) /* ours may be a pipe with a reader */
        dup2(null, STDOUT_FILENO);
    signal(SIGPIPE, SIG_IGN);
    close_others(socket);
    f(socket, arg);
    _exit(0);
}

ew_err ew_server_start(void (*f)(int socket, void *arg), void *arg, struct ew_server *out)
{
    int pair[2];
    EW_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, EW_ERR_MEMORY,
             "no socket for a process: %s", strerror(errno));
    const sigset_t before = hold_signals();
    const pid_t pid = fork();
    if (pid == 0)
        serve(f, arg, pair[1]);
    const int no_fork = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(pair[1]);
    if (pid < 0)
        close(pair[0]);
    EW_CHECK(pid > 0, EW_ERR_MEMORY, "no process: %s", strerror(no_fork));
    *out = (struct ew_server){.pid = pid, .fd = pair[0]};
    return EW_OK;
}

int ew_server_reap(pid_t pid, int patience_ms)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    int status = 0;
    pid_t ended = waitpid(pid, &status, WNOHANG);
    for (int i = 0; ended == 0 && i < patience_ms; i++) {
        nanosleep(&ms, NULL);
        ended = waitpid(pid, &status, WNOHANG);
    }
    if (ended == 0) {
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        return 0;
    }
    return ended > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int ew_server_stop(struct ew_server *s, int patience_ms)
{
    close(s->fd);
    return ew_server_reap(s->pid, patience_ms);
}

/* ---- Idle servers ---- */

bool ew_idle_take(struct ew_idle_servers *idle, struct ew_server *out)
{
    pthread_mutex_lock(&idle->lock);
    if (idle->owner != getpid())
        idle->n = 0;
    const bool there = idle->n > 0;
    if (there)
        *out = idle->list[--idle->n];
    pthread_mutex_unlock(&idle->lock);
    return there;
}

bool ew_idle_put(struct ew_idle_servers *idle, const struct ew_server *s)
{
    pthread_mutex_lock(&idle->lock);
    if (idle->owner != getpid())
        idle->n = 0;
    idle->owner = getpid();
    const bool room = idle->n < EW_IDLE_SERVERS;
    if (room)
        idle->list[idle->n++] = *s;
    pthread_mutex_unlock(&idle->lock);
    return room;
}

/* ---- Messages ---- */

ew_err ew_server_read(int fd, void *to, size_t n, int timeout_ms)
{
    for (char *at = to; n > 0;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int ready = poll(&p, 1, timeout_ms);
        if (ready < 0 && errno == EINTR)
            continue;
        EW_CHECK(ready > 0, EW_ERR_IO, "no answer within %d s", timeout_ms / 1000);
        const ssize_t got = read(fd, at, n);
        if (got < 0 && errno == EINTR)
            continue;
        EW_CHECK(got > 0, EW_ERR_IO, "the other side has gone");
        at += got;
        n -= (size_t)got;
    }
    return EW_OK;
}

ew_err ew_server_write(int fd, const void *from, size_t n)
{
    for (const char *at = from; n > 0;) {
        const ssize_t put = send(fd, at, n, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR)
            continue;
        EW_CHECK(put > 0, EW_ERR_IO, "the other side has gone");
        at += put;
        n -= (size_t)put;
    }
    return EW_OK;
}

ew_err ew_server_send_fd(int socket, int fd)
{
    char room[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        m.msg_control = room;
        m.msg_controllen = sizeof(room);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    }
    ssize_t n;
    while ((n = sendmsg(socket, &m, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        continue;
    EW_CHECK(n == 1, EW_ERR_IO, "the other side has gone");
    return EW_OK;
}

ew_err ew_server_take_fd(int socket, int *fd)
{
    char room[CMSG_SPACE(sizeof(int))] = {0}, byte;
    struct iovec part = {&byte, 1};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    ssize_t n;
    while ((n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        continue;
    EW_CHECK(n == 1, EW_ERR_IO, "the other side has gone");
    const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *fd = -1;
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(c), sizeof(*fd));
    return EW_OK;
}
