/* SPDX-License-Identifier: Apache-2.0 */
/* The helper process that forks servers (base/fork_server.h): receives their sockets and memory,
 * forks them, and reports their end. */
#include "base/fork_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MS 60000 /* timeout, generous for busy machines */

/* A request: a new server (pid 0), whose two descriptors follow, or the end of one. */
struct order {
    int32_t pid, patience_ms;
    uint64_t memory;
};

/* ---- Inside the process ---- */

/* In the new server. */
static void run_server(const struct ew_fork_server *s, int helper, int socket, int memory,
                       size_t size)
{
    void *at = NULL;
    if (size) {
        at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
        close(memory);
    }
    close(helper);
    if (at != MAP_FAILED)
        s->f(socket, at, size);
    _exit(at == MAP_FAILED);
}

static int32_t begin(const struct ew_fork_server *s, int helper, const struct order *o)
{
    int socket = -1, memory = -1;
    pid_t pid = -1;
    if (ew_server_take_fd(helper, &socket) == EW_OK &&
        ew_server_take_fd(helper, &memory) == EW_OK && socket >= 0 &&
        (memory >= 0) == (o->memory > 0))
        pid = fork();
    if (pid == 0)
        run_server(s, helper, socket, memory, (size_t)o->memory);
    close(socket);
    if (memory >= 0)
        close(memory);
    return (int32_t)pid;
}

static void start_servers(int socket, void *arg)
{
    const struct ew_fork_server *s = arg;
    struct order o;
    while (ew_server_read(socket, &o, sizeof(o), -1) == EW_OK) {
        const int32_t answer =
            o.pid == 0 ? begin(s, socket, &o) : ew_server_reap(o.pid, o.patience_ms);
        if (ew_server_write(socket, &answer, sizeof(answer)) != EW_OK)
            break;
    }
}

/* ---- Asking it ---- */

/* Lock held.  fd: the new server's descriptors; NULL to end one. */
static ew_err ask(struct ew_fork_server *s, const struct order *o, const int *fd, int32_t *answer)
{
    EW_TRY(ew_server_write(s->process.fd, o, sizeof(*o)));
    for (int i = 0; fd && i < 2; i++)
        EW_TRY(ew_server_send_fd(s->process.fd, fd[i]));
    return ew_server_read(s->process.fd, answer, sizeof(*answer), ANSWER_MS);
}

/* The same, with a new helper if the first was killed. */
static ew_err ask_any(struct ew_fork_server *s, const struct order *o, const int *fd,
                      int32_t *answer)
{
    if (s->owner == getpid() && s->process.pid && ask(s, o, fd, answer) == EW_OK)
        return EW_OK;
    if (s->owner == getpid() && s->process.pid)
        ew_server_stop(&s->process, 0);
    s->owner = getpid();
    s->process.pid = 0;
    if (!fd) /* a new helper does not know the old one's servers */
        return ew_fail(EW_ERR_IO, "the process that started it has gone");
    EW_TRY(ew_server_start(start_servers, s, &s->process));
    return ask(s, o, fd, answer);
}

static ew_err ask_locked(struct ew_fork_server *s, const struct order *o, const int *fd,
                         int32_t *answer)
{
    pthread_mutex_lock(&s->lock);
    const ew_err e = ask_any(s, o, fd, answer);
    pthread_mutex_unlock(&s->lock);
    return e;
}

/* Shared memory that the other side cannot shrink. */
static ew_err new_memory(size_t size, int *fd, void **at)
{
    *fd = -1;
    *at = NULL;
    if (!size)
        return EW_OK;
    *fd = memfd_create("edgewise", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    EW_CHECK(*fd >= 0, EW_ERR_MEMORY, "no shared memory: %s", strerror(errno));
    const bool sized = ftruncate(*fd, (off_t)size) == 0 &&
                       fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
    *at = sized ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0) : MAP_FAILED;
    if (*at != MAP_FAILED)
        return EW_OK;
    const int why = errno;
    close(*fd);
    return ew_fail(EW_ERR_MEMORY, "no shared memory of %zu bytes: %s", size, strerror(why));
}

ew_err ew_fork_server_start(struct ew_fork_server *s, size_t size, struct ew_server *out)
{
    int pair[2], memory;
    void *at;
    int32_t pid = -1;
    EW_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, EW_ERR_MEMORY,
             "no socket for a process: %s", strerror(errno));
    ew_err e = new_memory(size, &memory, &at);
    if (e == EW_OK) {
        const int theirs[2] = {pair[1], memory};
        e = ask_locked(s, &(struct order){.memory = size}, theirs, &pid);
        if (e != EW_OK || pid <= 0)
            e = e == EW_OK ? ew_fail(EW_ERR_MEMORY, "no process for a server")
                           : ew_fail_in(EW_ERR_MEMORY, "no process for a server");
        if (memory >= 0)
            close(memory);
        if (e != EW_OK && at)
            munmap(at, size);
    }
    close(pair[1]);
    if (e != EW_OK)
        close(pair[0]);
    else
        *out = (struct ew_server){.pid = pid, .fd = pair[0], .memory = at, .memory_size = size};
    return e;
}

int ew_fork_server_stop(struct ew_fork_server *s, struct ew_server *server, int patience_ms)
{
    int32_t signal = 0;
    close(server->fd);
    if (server->memory)
        munmap(server->memory, server->memory_size);
    const ew_err e = ask_locked(s, &(struct order){.pid = server->pid, .patience_ms = patience_ms},
                                NULL, &signal);
    *server = (struct ew_server){0};
    return e == EW_OK ? signal : 0;
}
