/* SPDX-License-Identifier: Apache-2.0 */
/* The live page's server: its responses, whom it refuses, and that neither slow nor hostile clients
 * block others, or the run. */
#include "report/serve/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "ew_test.h"
#include "report/serve/routes.h"
#include "results_store.h"

#define TOKEN "0123456789abcdef"

static int port, request_s;
static const struct ew_route *own_routes; /* NULL: the server's own */
static pid_t server;

static void serve(const struct ew_serve_opts *o, int to)
{
    struct ew_serve *s;
    const ew_err e = ew_serve_open(o, &s);
    const int answer[2] = {e, e == EW_OK ? ew_serve_port(s) : 0};
    if (write(to, answer, sizeof(answer)) != sizeof(answer) || e != EW_OK)
        _exit(1);
    for (;;)
        ew_serve_step(s, 100);
}

/* The server runs in its own process, as in production. */
static bool begin(const char *db, const char *token)
{
    int ends[2], answer[2] = {EW_ERR_IO, 0};
    if (!EW_EXPECT(pipe(ends) == 0))
        return false;
    server = fork();
    if (server == 0)
        serve(
            &(struct ew_serve_opts){
                .db = db, .token = token, .request_s = request_s, .routes = own_routes},
            ends[1]);
    close(ends[1]);
    EW_EXPECT(server > 0 && read(ends[0], answer, sizeof(answer)) == sizeof(answer));
    close(ends[0]);
    port = answer[1];
    if (answer[0] != EW_OK)
        waitpid(server, NULL, 0);
    if (answer[0] == EW_ERR_UNSUPPORTED) {
        ew_test_skip("built without libmicrohttpd");
        return false;
    }
    return EW_EXPECT_INT(answer[0], EW_OK);
}

static void end(void)
{
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
}

static int dial(void)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    EW_EXPECT(connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0);
    return fd;
}

static void say(int fd, const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t n = send(fd, text, size, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        text += n;
        size -= (size_t)n;
    }
}

/* True if the response is complete, by its Content-Length. */
static bool whole(const char *text, size_t size)
{
    static const char key[] = "Content-Length: ";
    const char *body = strstr(text, "\r\n\r\n"), *length = strstr(text, key);
    return body && length && length < body &&
           size - (size_t)(body + 4 - text) >= strtoull(length + strlen(key), NULL, 10);
}

/* Reads until the other side closes or the response is complete; also ends after half a minute of
 * silence, which no busy machine reaches. */
static char *hear(int fd)
{
    char *text = NULL, buf[4096];
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    do {
        const ssize_t n = poll(&p, 1, 30000) > 0 ? recv(fd, buf, sizeof(buf), 0) : 0;
        if (n <= 0)
            break;
        fwrite(buf, 1, (size_t)n, f);
        fflush(f);
    } while (!whole(text, size));
    fclose(f);
    close(fd);
    return text;
}

static char *ask(const char *request)
{
    const int fd = dial();
    say(fd, request, strlen(request));
    return hear(fd);
}

#define GET(path, more)                                                                            \
    ask("GET " path " HTTP/1.1\r\nHost: localhost:1\r\nConnection: close\r\n" more "\r\n")

static void expect(char *response, const char *status, const char *body)
{
    EW_EXPECT_HAS(response, status);
    if (body)
        EW_EXPECT_HAS(response, body);
    free(response);
}

static const char *make_store(void)
{
    struct ew_results r;
    struct ew_store *s;
    const char *path = ew_test_path("live.db");
    unlink(path);
    EW_EXPECT_OK(ew_case_results(&r));
    EW_EXPECT_OK(ew_store_open(path, NULL, &s));
    EW_EXPECT_OK(ew_case_put(s, &r));
    ew_store_close(s);
    ew_results_fini(&r);
    return path;
}

static void answers(void)
{
    if (!begin(make_store(), NULL))
        return;
    expect(GET("/", ""), "HTTP/1.1 200", "<script src=\"live.js\">");
    expect(GET("/style.css", ""), "Content-Type: text/css", "--paper");
    expect(GET("/state.json", ""), "HTTP/1.1 200", "\"status\":\"failed\",\"reason\":\"a step");
    expect(GET("/figures", ""), "HTTP/1.1 200", "data-figure=\"workers-lenet5\"");
    expect(GET("/report.html", ""), "HTTP/1.1 200", "</html>");
    expect(GET("/metrics", ""), "version=0.0.4", "edgewise_runs{status=\"done\"} 96\n");
    char *head = GET("/", "");
    EW_EXPECT_HAS(head, "X-Content-Type-Options: nosniff");
    EW_EXPECT_HAS(head, "script-src 'self'");
    EW_EXPECT_HAS(head, "frame-ancestors 'none'");
    EW_EXPECT_HAS(head, "Cache-Control: no-store");
    free(head);
    end();
}

static void refusals(void)
{
    if (!begin(make_store(), NULL))
        return;
    expect(GET("/nothing", ""), "HTTP/1.1 404", NULL);
    expect(GET("/../../etc/passwd", ""), "HTTP/1.1 404", NULL);
    expect(ask("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"), "HTTP/1.1 403",
           "localhost");
    expect(ask("GET / HTTP/1.0\r\n\r\n"), " 403", NULL);
    expect(ask("GET / HTTP/1.0\r\nHost: localhost.evil.example\r\n\r\n"), " 403", NULL);
    expect(ask("GET / HTTP/1.0\r\nHost: localhost:1@evil.example\r\n\r\n"), " 403", NULL);
    expect(ask("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\nxxxx"),
           "HTTP/1.1 405", "only GET");
    expect(ask("DELETE /state.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
           "HTTP/1.1 405", NULL);
    end();
}

static void tokens(void)
{
    if (!begin(make_store(), TOKEN))
        return;
    expect(GET("/", ""), "HTTP/1.1 401", "token");
    expect(GET("/metrics", "Authorization: Bearer 0123456789abcdeX\r\n"), "HTTP/1.1 401", NULL);
    expect(GET("/?token=0123456789abcde", ""), "HTTP/1.1 401", NULL);
    expect(GET("/metrics", "Authorization: Bearer " TOKEN "\r\n"), "HTTP/1.1 200", NULL);
    expect(GET("/?token=" TOKEN, ""), "HTTP/1.1 200",
           "Set-Cookie: edgewise=" TOKEN "; HttpOnly; SameSite=Strict");
    expect(GET("/state.json", "Cookie: edgewise=" TOKEN "\r\n"), "HTTP/1.1 200", NULL);
    /* With the token any Host is accepted. */
    expect(ask("GET / HTTP/1.0\r\nHost: board.lan\r\nCookie: edgewise=" TOKEN "\r\n\r\n"), " 200",
           NULL);
    end();
}

static void addresses(void)
{
    struct ew_serve *s = NULL;
    struct ew_serve_opts o = {.db = "x.db", .bind = "0.0.0.0"};
    const ew_err e = ew_serve_open(&o, &s);
    if (e == EW_ERR_UNSUPPORTED)
        EW_SKIP("%s", ew_error_message());
    EW_EXPECT_INT(e, EW_ERR_USAGE);
    EW_EXPECT_HAS(ew_error_message(), "needs a --token");
    o.token = "short";
    EW_EXPECT_ERR(ew_serve_open(&o, &s), EW_ERR_USAGE, "16 to");
    o.token = "0123456789abcdef; Path=/";
    EW_EXPECT_ERR(ew_serve_open(&o, &s), EW_ERR_USAGE, "letters, digits");
    o = (struct ew_serve_opts){.db = "x.db", .bind = "example.org", .token = TOKEN};
    EW_EXPECT_ERR(ew_serve_open(&o, &s), EW_ERR_USAGE, "not an address");
}

/* The file written by `run --live` is served unchanged, with results or without. */
static void video(void)
{
    const char *file = ew_test_path("clip.db" EW_SERVE_VIDEO);
    EW_EXPECT_OK(ew_file_write(file, "{\"frames\":7}\n", 13));
    if (!begin(ew_test_path("clip.db"), NULL))
        return;
    expect(GET("/video.json", ""), "Content-Type: application/json", "\"video\":{\"frames\":7}");
    expect(GET("/", ""), "HTTP/1.1 200", "id=\"video\" hidden");
    end();
}

static void no_store_yet(void)
{
    if (!begin(ew_test_path("none.db"), NULL))
        return;
    expect(GET("/", ""), "HTTP/1.1 200", NULL);
    expect(GET("/state.json", ""), "HTTP/1.1 404", "none.db");
    expect(GET("/video.json", ""), "HTTP/1.1 200", "\r\n\r\n{}");
    end();
}

/* ---- Slow responses ---- */

static int gate[2]; /* a slow response is completed when a byte arrives in this pipe */

static ew_err render_long(const char *db, FILE *out)
{
    char byte;
    EW_CHECK(read(gate[0], &byte, 1) == 1, EW_ERR_IO, "no byte");
    EW_CHECK(byte != 'f', EW_ERR_IO, "it has failed");
    fprintf(out, "long %c", byte);
    return EW_OK;
}

static ew_err render_short(const char *db, FILE *out)
{
    fputs("short", out);
    return EW_OK;
}

static const struct ew_route long_and_short[] = {
    {.path = "/long", .type = "text/plain", .render = render_long, .slow = true},
    {.path = "/other", .type = "text/plain", .render = render_long, .slow = true},
    {.path = "/short", .type = "text/plain", .render = render_short},
    {.path = NULL}};

/* While a report is being made, others are answered; requests for it meanwhile get the same one; a
 * client that has left, or reads slowly, blocks nobody. */
static void slow_responses(void)
{
    static const char get[] = "GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int fds[4];
    own_routes = long_and_short;
    request_s = 1;
    if (!EW_EXPECT(pipe(gate) == 0) || !begin("x.db", NULL))
        return;
    for (size_t i = 0; i < EW_COUNT(fds); i++) {
        fds[i] = dial();
        say(fds[i], get, sizeof(get) - 1);
    }
    expect(GET("/short", ""), "HTTP/1.1 200", "short");
    close(fds[3]);
    const int64_t from = ew_clock_ns(); /* longer than a client may take for its request */
    while (ew_clock_ns() - from < 3 * EW_NS_PER_S / 2)
        expect(GET("/short", ""), "HTTP/1.1 200", "short");
    EW_EXPECT(write(gate[1], "abf", 3) == 3);
    for (size_t i = 0; i < 3; i++)
        expect(hear(fds[i]), "HTTP/1.1 200", "long a");
    expect(GET("/other", ""), "HTTP/1.1 200", "long b");
    expect(GET("/other", ""), "HTTP/1.1 503", "it has failed");
    end();
    own_routes = NULL;
    request_s = 0;
}

/* Connections that send no complete request, or do not read; each report takes a while. */
static void stall(int *fds, size_t n)
{
    static const char slow[] = "GET /report.html HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (size_t i = 0; i < n; i++) {
        fds[i] = dial();
        say(fds[i], slow, i % 6 == 1 ? sizeof(slow) - 1 : 5);
    }
}

/* True while the server has not closed the connection, which it does after half a minute. */
static bool is_open(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void ask_and_write(const char *path)
{
    struct ew_store *s;
    struct ew_epoch_row row;
    expect(GET("/state.json", ""), "HTTP/1.1 200", NULL);
    ew_record_clear(EW_RECORD_EPOCH, &row);
    EW_EXPECT_OK(ew_store_open(path, NULL, &s));
    for (row.epoch = 100; row.epoch < 120; row.epoch++)
        EW_EXPECT_OK(ew_store_put(s, EW_RECORD_EPOCH, 1, &row));
    ew_store_close(s);
}

/* An endless header is cut off; a missing one only occupies a slot; a report that nobody reads
 * affects nobody else. */
static void bad_clients(void)
{
    const char *path = make_store();
    if (!begin(path, NULL))
        return;
    const size_t huge = 1 << 20;
    char *text = malloc(huge);
    memset(text, 'a', huge);
    memcpy(text, "GET / HTTP/1.1\r\nX: ", 19);
    const int fd = dial();
    say(fd, text, huge);
    char *response = hear(fd);
    EW_EXPECT(!strstr(response, " 200 "));
    free(response);
    free(text);

    /* The wait ends only when they are closed.  If the machine was busy for half a minute, try
     * again. */
    bool waited = true;
    for (int tries = 0; waited && tries < 5; tries++) {
        int idle[18];
        stall(idle, EW_COUNT(idle));
        ask_and_write(path);
        waited = !is_open(idle[0]);
        for (size_t i = 0; i < EW_COUNT(idle); i++)
            close(idle[i]);
    }
    EW_EXPECT(!waited);
    expect(GET("/state.json", ""), "HTTP/1.1 200", NULL);
    end();
}

/* A connection from one of this machine's own addresses, 127.0.0.N. */
static int dial_from(int n)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const struct sockaddr_in own = {.sin_family = AF_INET,
                                    .sin_addr = {htonl(0x7f000000u + (unsigned)n)}};
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    EW_EXPECT(bind(fd, (const struct sockaddr *)&own, sizeof(own)) == 0);
    EW_EXPECT(connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0);
    return fd;
}

/* Regression: 24 idle connections kept their address out, 48 from two addresses everybody. */
static void slow_clients_make_room(void)
{
    if (!begin(make_store(), NULL))
        return;
    int slow[120];
    for (size_t i = 0; i < EW_COUNT(slow); i++) {
        slow[i] = dial_from(1 + (int)(i % 3));
        say(slow[i], "GET /s", 6);
        if (i % 24 == 23)
            expect(GET("/state.json", ""), "HTTP/1.1 200", NULL);
    }
    expect(GET("/state.json", ""), "HTTP/1.1 200", NULL);
    for (size_t i = 0; i < EW_COUNT(slow); i++)
        close(slow[i]);
    end();
}

/* Single bytes now and then are not silence, but the request as a whole has a time limit. */
static void requests_have_an_end(void)
{
    request_s = 1;
    const bool begun = begin(make_store(), NULL);
    request_s = 0;
    if (!begun)
        return;
    const int fd = dial();
    struct pollfd p = {.fd = fd, .events = POLLIN};
    bool closed = false;
    say(fd, "GET /state.json HTTP/1.1\r\nX: ", 29);
    for (int i = 0; i < 300 && !closed; i++) { /* 30 s: far more than the limit */
        char c;
        say(fd, "x", 1);
        closed = poll(&p, 1, 100) > 0 && recv(fd, &c, 1, 0) <= 0;
    }
    EW_EXPECT(closed);
    close(fd);
    end();
}

/* Time that the server spends on its own work, or not running, does not count: a client with half a
 * request is still served. */
static void own_time_counts_for_nobody(void)
{
    static const char request[] = "GET /state.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    request_s = 1;
    const bool begun = begin(make_store(), NULL);
    request_s = 0;
    if (!begun)
        return;
    const int fd = dial();
    say(fd, request, 5);
    expect(GET("/state.json", ""), "HTTP/1.1 200", NULL); /* so that the second client is known
                                                           * too */
    kill(server, SIGSTOP);
    poll(NULL, 0, 2000); /* more than a request may take */
    kill(server, SIGCONT);
    expect(GET("/state.json", ""), "HTTP/1.1 200", NULL); /* it has looked at its clients */
    say(fd, request + 5, sizeof(request) - 6);
    expect(hear(fd), "HTTP/1.1 200", NULL);
    end();
}

/* Two servers on one port would each get some of the requests. */
static void one_server_on_a_port(void)
{
    if (!begin(make_store(), NULL))
        return;
    struct ew_serve *second = NULL;
    EW_EXPECT_ERR(ew_serve_open(&(struct ew_serve_opts){.db = "other.db", .port = port}, &second),
                  EW_ERR_IO, "Address already in use");
    ew_serve_close(second);
    expect(GET("/state.json", ""), "HTTP/1.1 200", NULL);
    end();
    /* a port whose last connections have just been closed can be used again */
    EW_EXPECT_OK(ew_serve_open(&(struct ew_serve_opts){.db = "other.db", .port = port}, &second));
    ew_serve_close(second);
}

EW_TEST_MAIN(EW_TEST(one_server_on_a_port), EW_TEST(slow_clients_make_room),
             EW_TEST(requests_have_an_end), EW_TEST(own_time_counts_for_nobody),
             EW_TEST(slow_responses), EW_TEST(answers), EW_TEST(refusals), EW_TEST(tokens),
             EW_TEST(addresses), EW_TEST(no_store_yet), EW_TEST(video), EW_TEST(bad_clients))
