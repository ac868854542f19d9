/* SPDX-License-Identifier: Apache-2.0 */
/* The server: access checks, limits, and a cache of responses. */
#include "report/serve/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/library.h"
#include "base/mem.h"
#include "report/html.h"
#include "report/serve/clients.h"
#include "report/serve/renderer.h"
#include "report/serve/routes.h"

#if EW_HAVE_SERVE
#include <microhttpd.h>

#define REQUEST_S          30 /* limit of a whole request, without the time that we take to answer */
#define REQUEST_BYTES      16384 /* head of a request, and what is kept to answer it */
#define TOKEN_COOKIE       "edgewise"
#define TOKEN_COOKIE_CHARS 200

/* clang-format off */
#define FUNCTIONS(X) \
    X(start_daemon) X(stop_daemon) X(run_wait) X(get_daemon_info) X(queue_response) \
    X(create_response_from_buffer) X(destroy_response) X(add_response_header) \
    X(lookup_connection_value) X(get_connection_info) X(suspend_connection) X(resume_connection)

/* Loaded by `serve` alone: libmicrohttpd loads a TLS library, which would delay other commands. */
static struct {
    void *handle; /* NULL: not yet */
#define POINTER(name) __typeof__(MHD_##name) *name;
    FUNCTIONS(POINTER)
} mhd;
/* clang-format on */

static ew_err open_library(void)
{
#define SYMBOL(name) {"MHD_" #name, &mhd.name},
    static const struct ew_symbol symbols[] = {FUNCTIONS(SYMBOL){NULL, NULL}};
    return mhd.handle ? EW_OK : ew_library_open(EW_SERVE_FILE, symbols, &mhd.handle);
}

struct ew_serve {
    struct MHD_Daemon *daemon;
    const char *db, *token;
    int port;
    const struct ew_route *routes;
    struct ew_response cache[EW_MAX_ROUTES];
    struct ew_renderer renderer;
    struct ew_clients clients;
};

/* ---- Access ---- */

/* Compares in constant time. */
static bool same_secret(const char *given, const char *token)
{
    const size_t n = strlen(given), m = strlen(token);
    unsigned differ = n != m;
    for (size_t i = 0; i < n; i++)
        differ |= (unsigned)(unsigned char)given[i] ^ (unsigned)(unsigned char)token[m ? i % m : 0];
    return differ == 0;
}

static bool has_token(const struct ew_serve *s, struct MHD_Connection *c, bool *by_query)
{
    const char *bearer = mhd.lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
    const char *cookie = mhd.lookup_connection_value(c, MHD_COOKIE_KIND, TOKEN_COOKIE);
    const char *query = mhd.lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token");
    *by_query = query && same_secret(query, s->token);
    return *by_query || (cookie && same_secret(cookie, s->token)) ||
           (bearer && strncmp(bearer, "Bearer ", 7) == 0 && same_secret(bearer + 7, s->token));
}

/* Defence against DNS rebinding when there is no token: the Host header must be a name that always
 * means this machine. */
static bool host_is_ours(struct MHD_Connection *c)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    const char *host = mhd.lookup_connection_value(c, MHD_HEADER_KIND, "Host");
    for (size_t i = 0; host && i < EW_COUNT(names); i++) {
        const size_t n = strlen(names[i]);
        if (strncasecmp(host, names[i], n) != 0 || (host[n] != 0 && host[n] != ':'))
            continue;
        const char *port = host + n + (host[n] == ':');
        return port[strspn(port, "0123456789")] == 0;
    }
    return false;
}

/* ---- Answering ---- */

static void add_headers(struct MHD_Response *r, const struct ew_route *a)
{
    static const char *const headers[][2] = {
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cache-Control", "no-store"},
    };
    for (size_t i = 0; i < EW_COUNT(headers); i++)
        mhd.add_response_header(r, headers[i][0], headers[i][1]);
    if (!a || !a->own_csp)
        mhd.add_response_header(r, "Content-Security-Policy",
                                "default-src 'none'; script-src 'self'; style-src 'self' "
                                "'unsafe-inline'; connect-src 'self'; img-src 'self' data:; "
                                "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    mhd.add_response_header(r, "Content-Type", a ? a->type : "text/plain; charset=utf-8");
    if (a && a->packed)
        mhd.add_response_header(r, "Content-Encoding", "gzip");
}

static enum MHD_Result send_bytes(const struct ew_serve *s, struct MHD_Connection *c,
                                  const struct ew_route *a, const struct ew_response *k,
                                  unsigned status, bool set_cookie)
{
    /* A cached response may be replaced while a slow client still reads, so the client gets a copy.
     */
    const enum MHD_ResponseMemoryMode mode =
        a && a->asset ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY;
    struct MHD_Response *r = mhd.create_response_from_buffer(k->size, k->text, mode);
    if (!r)
        return MHD_NO;
    add_headers(r, a);
    if (set_cookie) {
        char cookie[TOKEN_COOKIE_CHARS + 64];
        snprintf(cookie, sizeof(cookie), TOKEN_COOKIE "=%s; HttpOnly; SameSite=Strict; Path=/",
                 s->token);
        mhd.add_response_header(r, "Set-Cookie", cookie);
    }
    const enum MHD_Result ok = mhd.queue_response(c, status, r);
    mhd.destroy_response(r);
    return ok;
}

static enum MHD_Result refuse(const struct ew_serve *s, struct MHD_Connection *c, unsigned status,
                              const char *why)
{
    char text[256];
    const int n = snprintf(text, sizeof(text), "%s\n", why);
    return send_bytes(s, c, NULL, &(struct ew_response){.text = text, .size = (size_t)n}, status,
                      false);
}

static struct ew_client *client_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *own =
        mhd.get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return own ? own->socket_context : NULL;
}

/* States of a request: its header was received; it has waited for its response. */
static const char heard, waited;

static void set_state(void **state, const char *to)
{
    memcpy(state, &(const void *){to}, sizeof(*state));
}

static void set_waits(struct MHD_Connection *c, bool waits)
{
    struct ew_client *client = client_of(c);
    if (client)
        client->waits = waits;
}

static void resume(void *connection)
{
    mhd.resume_connection(connection);
}

/* Whether the renderer's thread makes this response: the request is suspended until it is ready. */
static bool left_to_renderer(struct ew_serve *s, struct MHD_Connection *c, const struct ew_route *a,
                             void **state)
{
    if (!a->slow)
        return false;
    mhd.suspend_connection(c); /* before it can be resumed */
    set_state(state, &waited);
    set_waits(c, true);
    if (ew_renderer_request(&s->renderer, (int)(a - s->routes), c))
        return true;
    set_waits(c, false);
    mhd.resume_connection(c);
    return false;
}

static enum MHD_Result respond(struct ew_serve *s, struct MHD_Connection *c,
                               const struct ew_route *a, bool set_cookie, void **state)
{
    if (a->asset) {
        struct ew_response k = {0};
        const unsigned char *bytes = ew_asset(a->asset, &k.size);
        if (!bytes)
            return refuse(s, c, MHD_HTTP_NOT_FOUND, "not built in");
        memcpy(&k.text, &bytes, sizeof(k.text)); /* only read */
        return send_bytes(s, c, a, &k, MHD_HTTP_OK, set_cookie);
    }
    struct ew_response *k = &s->cache[a - s->routes];
    const bool has_waited = *state == (const void *)&waited;
    ew_renderer_take(&s->renderer, (int)(a - s->routes), k);
    if (!k->made_ns ||
        (!has_waited && ew_clock_ns() - k->made_ns > a->cache_ms * INT64_C(1000000))) {
        if (left_to_renderer(s, c, a, state))
            return MHD_YES;
        ew_response_render(k, a, s->db);
    }
    set_waits(c, false);
    const unsigned status = !k->failed     ? MHD_HTTP_OK
                            : k->not_found ? MHD_HTTP_NOT_FOUND
                                           : MHD_HTTP_SERVICE_UNAVAILABLE;
    return send_bytes(s, c, k->failed ? NULL : a, k, status, set_cookie);
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state)
{
    struct ew_serve *s = ctx;
    bool by_query = false;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return refuse(s, c, MHD_HTTP_METHOD_NOT_ALLOWED,
                      "only GET is allowed: this page is read-only");
    if (!*state) { /* only the header has arrived: answering now would close the connection */
        set_state(state, &heard);
        return MHD_YES;
    }
    if (*upload_size) /* an unexpected request body */
        return MHD_NO;
    if (s->token && !has_token(s, c, &by_query))
        return refuse(s, c, MHD_HTTP_UNAUTHORIZED,
                      "this page needs its token: add ?token=... to the address");
    if (!s->token && !host_is_ours(c))
        return refuse(s, c, MHD_HTTP_FORBIDDEN, "the Host header must be localhost");
    for (const struct ew_route *a = s->routes; a->path; a++)
        if (strcmp(url, a->path) == 0)
            return respond(s, c, a, by_query, state);
    return refuse(s, c, MHD_HTTP_NOT_FOUND, "there is no such page");
}

/* ---- Connections ---- */

static void on_connection(void *ctx, struct MHD_Connection *c, void **client,
                          enum MHD_ConnectionNotificationCode code)
{
    struct ew_serve *s = ctx;
    if (code != MHD_CONNECTION_NOTIFY_STARTED) {
        ew_clients_remove(*client);
        *client = NULL;
        return;
    }
    const union MHD_ConnectionInfo *fd =
        mhd.get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *from =
        mhd.get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (fd)
        *client = ew_clients_add(&s->clients, fd->connect_fd, from ? from->client_addr : NULL,
                                 ew_clock_ns());
}

/* The time of the next request counts from the end of this one. */
static void on_completed(void *ctx, struct MHD_Connection *c, void **state,
                         enum MHD_RequestTerminationCode code)
{
    struct ew_client *client = client_of(c);
    *state = NULL;
    if (client)
        client->since_ns = ew_clock_ns();
}

/* ---- Opening ---- */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static ew_err read_address(const struct ew_serve_opts *o, union address *at, bool *loopback)
{
    const char *text = o->bind ? o->bind : "127.0.0.1";
    *at = (union address){.v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o->port)}};
    if (inet_pton(AF_INET, text, &at->v4.sin_addr) == 1) {
        *loopback = ntohl(at->v4.sin_addr.s_addr) >> 24 == 127;
        return EW_OK;
    }
    *at = (union address){.v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)o->port)}};
    EW_CHECK(inet_pton(AF_INET6, text, &at->v6.sin6_addr) == 1, EW_ERR_USAGE,
             "--bind %s is not an address such as 127.0.0.1, 0.0.0.0 or ::1", text);
    *loopback = IN6_IS_ADDR_LOOPBACK(&at->v6.sin6_addr);
    return EW_OK;
}

static ew_err check_token(const struct ew_serve_opts *o, bool loopback)
{
    if (!o->token) {
        EW_CHECK(loopback, EW_ERR_USAGE,
                 "--bind %s can be reached from other machines: it needs a --token", o->bind);
        return EW_OK;
    }
    EW_CHECK(strlen(o->token) >= EW_SERVE_TOKEN_LEAST && strlen(o->token) < TOKEN_COOKIE_CHARS,
             EW_ERR_USAGE, "a token has %d to %d characters, not %zu", EW_SERVE_TOKEN_LEAST,
             TOKEN_COOKIE_CHARS - 1, strlen(o->token));
    for (const char *p = o->token; *p; p++)
        EW_CHECK(strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.", *p),
                 EW_ERR_USAGE, "a token is made of letters, digits, '-', '_' and '.'");
    return EW_OK;
}

/* The library's own time-out would include our time for an answer and close waiting clients;
 * clients.h has one that does not. */
static ew_err start(struct ew_serve *s, const union address *at)
{
    EW_TRY(open_library());
    const unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
                           (at->any.sa_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    errno = 0;
    s->daemon = mhd.start_daemon(
        flags, 0, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, &at->any,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)EW_CLIENTS_ROOM, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES, MHD_OPTION_END);
    EW_CHECK(s->daemon, EW_ERR_IO, "cannot listen: %s", errno ? strerror(errno) : "port in use?");
    const union MHD_DaemonInfo *port = mhd.get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    s->port = port ? port->port : 0;
    return EW_OK;
}

ew_err ew_serve_open(const struct ew_serve_opts *o, struct ew_serve **out)
{
    union address at;
    bool loopback = false;
    EW_TRY(read_address(o, &at, &loopback));
    EW_TRY(check_token(o, loopback));
    struct ew_serve *s = calloc(1, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory for the server");
    s->db = o->db;
    s->token = o->token;
    s->routes = o->routes ? o->routes : ew_routes;
    ew_renderer_init(&s->renderer, s->db, s->routes, resume);
    ew_clients_init(&s->clients, (o->request_s ? o->request_s : REQUEST_S) * EW_NS_PER_S);
    const ew_err e = start(s, &at);
    if (e != EW_OK) {
        ew_renderer_fini(&s->renderer);
        free(s);
        return ew_fail_in(e, "%s port %d", o->bind ? o->bind : "127.0.0.1", o->port);
    }
    /* Measurements on this machine have priority over the server. */
    (void)setpriority(PRIO_PROCESS, 0, 10);
    *out = s;
    return EW_OK;
}

int ew_serve_port(const struct ew_serve *s)
{
    return s->port;
}

ew_err ew_serve_step(struct ew_serve *s, int wait_ms)
{
    const int64_t from = ew_clock_ns();
    EW_CHECK(mhd.run_wait(s->daemon, wait_ms) == MHD_YES, EW_ERR_IO, "the server has stopped");
    const int64_t now = ew_clock_ns(), own = now - from - wait_ms * INT64_C(1000000);
    ew_clients_expire(&s->clients, now, own > 0 ? own : 0);
    return EW_OK;
}

void ew_serve_close(struct ew_serve *s)
{
    if (!s)
        return;
    ew_renderer_fini(&s->renderer); /* no request may be suspended when the daemon stops */
    mhd.stop_daemon(s->daemon);
    for (int i = 0; i < EW_MAX_ROUTES; i++)
        free(s->cache[i].text);
    free(s);
}

#else

ew_err ew_serve_open(const struct ew_serve_opts *o, struct ew_serve **out)
{
    return ew_fail(EW_ERR_UNSUPPORTED, "this program was built without libmicrohttpd");
}

int ew_serve_port(const struct ew_serve *s)
{
    return 0;
}

ew_err ew_serve_step(struct ew_serve *s, int wait_ms)
{
    return ew_fail(EW_ERR_UNSUPPORTED, "this program was built without libmicrohttpd");
}

void ew_serve_close(struct ew_serve *s)
{
}

#endif
