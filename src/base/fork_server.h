/* SPDX-License-Identifier: Apache-2.0 */
/* Server processes, forked by a small helper process that is itself forked early.  Forking the
 * program once it is large takes long, and copy-on-write would duplicate every page that it writes
 * from then on (a training network's weights).  And the helper has no other threads, whose locks a
 * fork would leave held in the server. */
#ifndef EW_BASE_FORK_SERVER_H
#define EW_BASE_FORK_SERVER_H

#include <pthread.h>

#include "base/spawn.h"

/* The main function of a server; memory NULL: it asked for none. */
typedef void (*ew_fork_server_fn)(int socket, void *memory, size_t size);

struct ew_fork_server {
    ew_fork_server_fn f;
    pthread_mutex_t lock; /* guards all below */
    pid_t owner;          /* a fork of the program shares nothing of it */
    struct ew_server process;
};
#define EW_FORK_SERVER_INIT(run)                                                                   \
    {                                                                                              \
        .f = (run), .lock = PTHREAD_MUTEX_INITIALIZER                                              \
    }

/* Starts a server with `size` bytes of shared memory (0: none); the first call forks the helper. */
ew_err ew_fork_server_start(struct ew_fork_server *s, size_t size, struct ew_server *out);
/* Ends it, as ew_server_stop. */
int ew_fork_server_stop(struct ew_fork_server *s, struct ew_server *server, int patience_ms);

#endif
