/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on connections: which is dropped when there are too many.
 *
 * An idle time-out would let a client that sends a byte now and then stay for ever, and a plain
 * limit would let it keep others out.  So a request as a whole has a time limit, and if an address,
 * or the server, has too many connections, the one that has been without a complete request the
 * longest is dropped for the new one. */
#ifndef EW_REPORT_SERVE_CLIENTS_H
#define EW_REPORT_SERVE_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define EW_CLIENTS_MOST     48 /* connections */
#define EW_CLIENTS_FROM_ONE 24 /* of one address */
#define EW_CLIENTS_ROOM     96 /* includes dropped connections that are not closed yet */

struct ew_client {
    int fd; /* -1: free */
    bool told;
    bool waits; /* waits for a response that is being rendered, which does not count against it */
    unsigned char address[16];
    int64_t
        since_ns; /* of connecting or of the last complete request, plus the server's own time */
};

struct ew_clients {
    struct ew_client list[EW_CLIENTS_ROOM];
    int64_t request_ns; /* that a request may take as a whole */
};

void ew_clients_init(struct ew_clients *c, int64_t request_ns);

/* Adds a connection and drops another one if there are too many.  NULL: no room, it is dropped
 * itself. */
struct ew_client *ew_clients_add(struct ew_clients *c, int fd, const struct sockaddr *from,
                                 int64_t now_ns);
void ew_clients_remove(struct ew_client *one); /* NULL is fine */

/* Drops connections whose request takes too long.  The server's own time since the last call,
 * own_ns, does not count. */
void ew_clients_expire(struct ew_clients *c, int64_t now_ns, int64_t own_ns);

#endif
