/* SPDX-License-Identifier: Apache-2.0 */
/* The list of connections.  A connection is dropped by shutting its socket down: the server then
 * sees its end and closes it. */
#include "report/serve/clients.h"

#include <netinet/in.h>
#include <string.h>

void ew_clients_init(struct ew_clients *c, int64_t request_ns)
{
    c->request_ns = request_ns;
    for (int i = 0; i < EW_CLIENTS_ROOM; i++)
        c->list[i].fd = -1;
}

static void address_of(const struct sockaddr *from, unsigned char out[16])
{
    memset(out, 0, 16);
    if (from && from->sa_family == AF_INET)
        memcpy(out, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
    else if (from && from->sa_family == AF_INET6)
        memcpy(out, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
}

static void tell(struct ew_client *one)
{
    shutdown(one->fd, SHUT_RDWR);
    one->told = true;
}

static bool is_here(const struct ew_client *one)
{
    return one->fd >= 0 && !one->told;
}

/* Number of connections, or of those from `address`. */
static int count(const struct ew_clients *c, const unsigned char *address)
{
    int n = 0;
    for (int i = 0; i < EW_CLIENTS_ROOM; i++)
        n += is_here(&c->list[i]) && (!address || memcmp(c->list[i].address, address, 16) == 0);
    return n;
}

/* Closes the longest waiting connection of the address with the most connections. */
static void make_room(struct ew_clients *c)
{
    struct ew_client *oldest = NULL;
    int most = 0;
    for (int i = 0; i < EW_CLIENTS_ROOM; i++) {
        struct ew_client *one = &c->list[i];
        if (!is_here(one))
            continue;
        const int n = count(c, one->address);
        if (n > most || (n == most && one->since_ns < oldest->since_ns))
            oldest = one;
        most = n > most ? n : most;
    }
    if (oldest)
        tell(oldest);
}

static void make_room_of(struct ew_clients *c, const unsigned char *address)
{
    struct ew_client *oldest = NULL;
    for (int i = 0; i < EW_CLIENTS_ROOM; i++) {
        struct ew_client *one = &c->list[i];
        if (is_here(one) && memcmp(one->address, address, 16) == 0 &&
            (!oldest || one->since_ns < oldest->since_ns))
            oldest = one;
    }
    if (oldest)
        tell(oldest);
}

struct ew_client *ew_clients_add(struct ew_clients *c, int fd, const struct sockaddr *from,
                                 int64_t now_ns)
{
    struct ew_client *free_one = NULL;
    unsigned char address[16];
    address_of(from, address);
    for (int i = 0; i < EW_CLIENTS_ROOM && !free_one; i++)
        if (c->list[i].fd < 0)
            free_one = &c->list[i];
    if (!free_one) {
        shutdown(fd, SHUT_RDWR);
        return NULL;
    }
    if (count(c, address) >= EW_CLIENTS_FROM_ONE)
        make_room_of(c, address);
    if (count(c, NULL) >= EW_CLIENTS_MOST)
        make_room(c);
    *free_one = (struct ew_client){.fd = fd, .since_ns = now_ns};
    memcpy(free_one->address, address, sizeof(address));
    return free_one;
}

void ew_clients_remove(struct ew_client *one)
{
    if (one)
        one->fd = -1;
}

void ew_clients_expire(struct ew_clients *c, int64_t now_ns, int64_t own_ns)
{
    for (int i = 0; i < EW_CLIENTS_ROOM; i++) {
        struct ew_client *one = &c->list[i];
        const int64_t since = one->waits ? now_ns : one->since_ns + own_ns;
        one->since_ns = since < now_ns ? since : now_ns;
        if (is_here(one) && now_ns - one->since_ns > c->request_ns)
            tell(one);
    }
}
