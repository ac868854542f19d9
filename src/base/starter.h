/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that serve us, started by a small one that was forked early.  A fork of the program
 * itself, once that is large, would keep every page that the program writes from then on in its old
 * state (a training network's weights, say), and takes longer the more memory there is. */
#ifndef EW_BASE_STARTER_H
#define EW_BASE_STARTER_H

#include <pthread.h>

#include "base/spawn.h"

/* What a server does with its end of the socket and the shared memory, until it returns. */
typedef void (*ew_served)(int socket, void *memory, size_t size);

struct ew_starter {
    ew_served f;
    pthread_mutex_t lock; /* guards all below */
    pid_t owner;          /* a fork of the program shares nothing of it */
    struct ew_server process;
};
#define EW_STARTER_INIT(run)                                                                       \
    {                                                                                              \
        .f = (run), .lock = PTHREAD_MUTEX_INITIALIZER                                              \
    }

/* Starts a server that has `size` bytes of memory together with us; the first call forks the
 * process that starts all others. */
ew_err ew_starter_start(struct ew_starter *s, size_t size, struct ew_server *out);
/* Ends it, as ew_server_stop. */
int ew_starter_stop(struct ew_starter *s, struct ew_server *server, int patience_ms);

#endif
