/* SPDX-License-Identifier: Apache-2.0 */
/* Starting programs and waiting for them: the one place that does.  A program gets a list of words,
 * never a line that a shell takes apart; pipes and files of ours that it was not given are closed
 * in it.  base/process.h tells processes apart that others started. */
#ifndef EW_BASE_SPAWN_H
#define EW_BASE_SPAWN_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"

/* What one of its standard streams is. */
enum ew_stream {
    EW_STREAM_OURS, /* the same as ours */
    EW_STREAM_NULL,
    EW_STREAM_PIPE, /* our end is in ew_spawned.fd */
    EW_STREAM_FILE, /* written anew; the input: read */
    EW_STREAM_ERR   /* our standard error, for outputs */
};

/* How it is started; all 0: as we are. */
struct ew_spawn_opts {
    const char *path;               /* the program; NULL: argv[0], looked up in PATH */
    const char *folder;             /* where it runs; NULL: here.  Files are opened before */
    const char *const *environment; /* "NAME=value" in the place of ours; NULL at the end */
    enum ew_stream stream[3];       /* standard input, output, error */
    const char *file[3];            /* for EW_STREAM_FILE */
    const sigset_t *mask;           /* signals that it begins with blocked; NULL: those of ours */
    bool group;                     /* a process group of its own: what it starts ends with it */
    int when_we_end;                /* the signal that it then gets, however we end; 0: none */
};

struct ew_spawned {
    pid_t pid;
    int fd[3]; /* our ends of its pipes, closed in programs that follow; -1: none */
    bool group;
};

/* Starts argv (NULL at the end; o may be NULL).  Fails where it cannot be started, with the name
 * and the system's reason: EW_ERR_NOT_FOUND where there is no such program, else EW_ERR_IO. */
ew_err ew_spawn(const char *const *argv, const struct ew_spawn_opts *o, struct ew_spawned *out);

/* Closes one of our ends, which tells it that there is no more. */
void ew_spawn_close(struct ew_spawned *p, int stream);
/* Sends a signal to it, or to its group. */
void ew_spawn_signal(const struct ew_spawned *p, int signal);
/* Closes what is open and waits for its end.  `status` is waitpid's, `use` (may be NULL) counts its
 * own finished children too. */
ew_err ew_spawn_wait(struct ew_spawned *p, int *status, struct rusage *use);
/* Asks it (SIGTERM) to end, kills it where it has not within so many milliseconds, and closes what
 * is open. */
void ew_spawn_end(struct ew_spawned *p, int patience_ms);
/* Starts it and waits. */
ew_err ew_spawn_run(const char *const *argv, const struct ew_spawn_opts *o, int *status);

/* It ended by itself, with 0. */
bool ew_status_well(int status);
/* "exit status 3", "signal 9". */
#define EW_STATUS_CHARS 32
void ew_status_text(int status, char out[EW_STATUS_CHARS]);

/* ---- Signals that are meant for the program ---- */

/* Blocks Ctrl-C and requests to end, for as long as a program runs that they are meant for; give
 * *before to it as its mask. */
void ew_signals_hold(sigset_t *before);
/* Waits until it has ended, a signal came or pause_ns are over (< 0: none of that); passes requests
 * to end on to it, while Ctrl-C has reached it from the terminal.  True: it still runs. */
bool ew_spawn_tend(const struct ew_spawned *p, int64_t pause_ns);
/* While they are blocked: whether one has come. */
bool ew_signals_came(void);
/* Forgets Ctrl-C that came meanwhile, and unblocks. */
void ew_signals_release(const sigset_t *before);

/* ---- A function in a process of its own ---- */

/* Runs f(arg, out) in a copy of this process and brings the `size` bytes at `out` back (at most
 * 4096); its memory and its crash are not ours.  Fails where it did not end well. */
ew_err ew_spawn_function(void (*f)(void *arg, void *out), void *arg, void *out, size_t size);

/* A copy of this process that serves us over a socket. */
struct ew_server {
    pid_t pid;
    int fd;       /* our end */
    void *memory; /* that both sides have, and its size; for the caller's use */
    size_t memory_size;
};

/* Runs f(socket, arg) in a copy of this process, until f returns.  Of our descriptors it keeps the
 * standard ones, with nothing in its input and output, and the socket, whose end it sees when we
 * are gone.  Other threads' locks are held there for good if they were at this moment: f uses the C
 * library and what no other thread does. */
ew_err ew_server_start(void (*f)(int socket, void *arg), void *arg, struct ew_server *out);
/* Closes our end, and kills it where it has not ended within so many milliseconds.  The signal that
 * it died of by itself, or 0. */
int ew_server_stop(struct ew_server *s, int patience_ms);
/* The same of a child whose socket somebody else has. */
int ew_server_await(pid_t pid, int patience_ms);

/* All n bytes from or to one; EW_ERR_IO where it has gone, or for timeout_ms (-1: any time) says
 * nothing. */
ew_err ew_server_read(int fd, void *to, size_t n, int timeout_ms);
ew_err ew_server_write(int fd, const void *from, size_t n);
/* A descriptor over the socket, or -1 in its place. */
ew_err ew_server_send_fd(int socket, int fd);
ew_err ew_server_take_fd(int socket, int *fd);

/* Those that have nothing to do at the moment: starting one takes longer than most requests. */
#define EW_IDLE_SERVERS 16
struct ew_idle_servers {
    pthread_mutex_t lock; /* guards all below */
    pid_t owner;          /* a fork of the program shares none of them */
    int n;
    struct ew_server list[EW_IDLE_SERVERS];
};
#define EW_IDLE_SERVERS_INIT                                                                       \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }

/* False: there is none. */
bool ew_idle_take(struct ew_idle_servers *idle, struct ew_server *out);
/* False: there is no room, and it is the caller's to stop. */
bool ew_idle_put(struct ew_idle_servers *idle, const struct ew_server *s);

#endif
