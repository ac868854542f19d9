/* SPDX-License-Identifier: Apache-2.0 */
/* Starting child processes and waiting for them, in one place.  Arguments are a list, never a shell
 * command line; our pipes and files that were not passed on are closed in the child.  Identifying
 * processes that others started is base/process.h's. */
#ifndef EW_BASE_SPAWN_H
#define EW_BASE_SPAWN_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"

/* A standard stream of the child. */
enum ew_stream {
    EW_STREAM_OURS, /* inherited */
    EW_STREAM_NULL,
    EW_STREAM_PIPE, /* a pipe; our end is ew_spawned.fd */
    EW_STREAM_FILE, /* a file, truncated; for standard input read */
    EW_STREAM_ERR   /* outputs: our standard error */
};

/* Options; all 0: inherit everything. */
struct ew_spawn_opts {
    const char *path;               /* the program; NULL: argv[0], searched in PATH */
    const char *folder;             /* working directory; NULL: ours.  `file` is relative to ours */
    const char *const *environment; /* "NAME=value" overrides, NULL-terminated */
    enum ew_stream stream[3];       /* standard input, output, error */
    const char *file[3];            /* for EW_STREAM_FILE */
    const sigset_t *mask;           /* initial signal mask; NULL: ours */
    bool group;                     /* its own process group, which signals reach as a whole */
    int when_we_end;                /* signal to the child when we end, in whatever way; 0: none */
};

struct ew_spawned {
    pid_t pid;
    int fd[3]; /* our ends of its pipes, close-on-exec; -1: none */
    bool group;
};

/* Starts argv (NULL-terminated; o may be NULL).  The error names the program and the system's
 * reason: EW_ERR_NOT_FOUND if there is no such program, else EW_ERR_IO. */
ew_err ew_spawn(const char *const *argv, const struct ew_spawn_opts *o, struct ew_spawned *out);

/* Closes our end of a pipe: the child sees end of file. */
void ew_spawn_close(struct ew_spawned *p, int stream);
/* Sends a signal to the child, or to its group. */
void ew_spawn_signal(const struct ew_spawned *p, int signal);
/* Closes open pipes and waits for the child.  `status` is waitpid's; `use` (may be NULL) includes
 * its own waited-for children. */
ew_err ew_spawn_wait(struct ew_spawned *p, int *status, struct rusage *use);
/* Sends SIGTERM, SIGKILL if it has not ended after patience_ms, waits, and closes open pipes. */
void ew_spawn_end(struct ew_spawned *p, int patience_ms);
/* Starts a program and waits for it. */
ew_err ew_spawn_run(const char *const *argv, const struct ew_spawn_opts *o, int *status);

/* True for exit status 0. */
bool ew_status_is_success(int status);
/* "exit status 3", "signal 9". */
#define EW_STATUS_CHARS 32
void ew_status_text(int status, char out[EW_STATUS_CHARS]);

/* ---- Signals meant for the child ---- */

/* Blocks Ctrl-C and termination signals while a child runs for which they are meant; pass *before
 * to it as its mask. */
void ew_signals_hold(sigset_t *before);
/* Waits until the child has ended, a signal came or pause_ns are over (< 0: no timeout); forwards
 * termination signals to it (Ctrl-C reaches it from the terminal).  True: still running. */
bool ew_spawn_supervise(const struct ew_spawned *p, int64_t pause_ns);
/* True if one of the blocked signals is pending. */
bool ew_signals_pending(void);
/* Discards a pending Ctrl-C, and unblocks. */
void ew_signals_release(const sigset_t *before);

/* ---- Functions in child processes ---- */

/* Runs f(arg, out) in a forked child and returns the `size` bytes at `out` (at most 4096),
 * isolating its memory use and crashes.  Fails unless it ends normally. */
ew_err ew_spawn_function(void (*f)(void *arg, void *out), void *arg, void *out, size_t size);

/* A forked child that serves requests over a socket. */
struct ew_server {
    pid_t pid;
    int fd;       /* our end */
    void *memory; /* shared memory and its size, for the caller's use */
    size_t memory_size;
};

/* Forks a child that runs f(socket, arg) until f returns.  It keeps the standard descriptors (with
 * /dev/null as input and output) and the socket, on which it sees end of file when we end; all
 * signals but faults are blocked.  Locks that other threads hold at the fork are never released
 * there: f may use the C library, and nothing that other threads use. */
ew_err ew_server_start(void (*f)(int socket, void *arg), void *arg, struct ew_server *out);
/* Closes our end, and kills the child if it has not ended after patience_ms.  Returns the signal
 * that it died of by itself, or 0. */
int ew_server_stop(struct ew_server *s, int patience_ms);
/* The same for a child whose socket another process has. */
int ew_server_reap(pid_t pid, int patience_ms);

/* Reads or writes all n bytes; EW_ERR_IO if the other side has ended, or is silent for timeout_ms
 * (-1: no timeout). */
ew_err ew_server_read(int fd, void *to, size_t n, int timeout_ms);
ew_err ew_server_write(int fd, const void *from, size_t n);
/* Passes a descriptor (or -1) over the socket. */
ew_err ew_server_send_fd(int socket, int fd);
ew_err ew_server_take_fd(int socket, int *fd);

/* A pool of idle servers, since starting one takes longer than most requests. */
#define EW_IDLE_SERVERS 16
struct ew_idle_servers {
    pthread_mutex_t lock; /* guards all below */
    pid_t owner;          /* a forked child does not share them */
    int n;
    struct ew_server list[EW_IDLE_SERVERS];
};
#define EW_IDLE_SERVERS_INIT                                                                       \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }

/* False: no idle server. */
bool ew_idle_take(struct ew_idle_servers *idle, struct ew_server *out);
/* False: the pool is full, and the caller must stop the server. */
bool ew_idle_put(struct ew_idle_servers *idle, const struct ew_server *s);

#endif
