/* SPDX-License-Identifier: Apache-2.0 */
/* Who is connected, and who has to go so that others can come.
 *
 * A time-out of silence lets a client that sends a byte now and then stay for ever, and a
 * plain limit of connections lets it keep others out.  Here a request as a whole has a time, and
 * where an address, or the server, has too many connections the one that has waited longest without
 * completing a request makes room for the new one. */
#ifndef EW_REPORT_SERVE_CLIENTS_H
#define EW_REPORT_SERVE_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define EW_CLIENTS_MOST     48 /* connections */
#define EW_CLIENTS_FROM_ONE 24 /* of one address */
#define EW_CLIENTS_ROOM     96 /* those that were told to go are here until they have */

struct ew_client {
    int fd; /* -1: free */
    bool told;
    bool waits; /* for an answer that is being made: not its own time */
    unsigned char address[16];
    int64_t
        since_ns; /* when it came, or completed its last request; later by what the server took */
};

struct ew_clients {
    struct ew_client list[EW_CLIENTS_ROOM];
    int64_t request_ns; /* that a request may take as a whole */
};

void ew_clients_init(struct ew_clients *c, int64_t request_ns);

/* A connection has come; others may have to go.  NULL: no room, it is told to go itself. */
struct ew_client *ew_clients_add(struct ew_clients *c, int fd, const struct sockaddr *from,
                                 int64_t now_ns);
void ew_clients_remove(struct ew_client *one); /* NULL is fine */

/* Tells those to go whose request takes too long.  What the server itself took since the last time,
 * own_ns, counts for nobody. */
void ew_clients_expire(struct ew_clients *c, int64_t now_ns, int64_t own_ns);

#endif
