/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise serve: a live page of running measurements. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sandbox.h"
#include "cli/cmd.h"
#include "report/serve/serve.h"
#include "store/store.h"

struct opts {
    const char *db, *bind, *token;
    int64_t port;
};

/* clang-format off */
static const struct ew_field table[] = {
    {.name = "port", .type = EW_FIELD_INT, .offset = offsetof(struct opts, port), .def = "8470",
     .min = 0, .max = 65535, .metavar = "N", .letter = 'p', .help = "TCP port; 0: any free one"},
    {.name = "db", .type = EW_FIELD_STR, .offset = offsetof(struct opts, db),
     .def = EW_STORE_FILE, .metavar = "FILE",
     .help = "the results database; it need not exist yet"},
    {.name = "bind", .type = EW_FIELD_STR, .offset = offsetof(struct opts, bind),
     .def = "127.0.0.1", .metavar = "ADDRESS",
     .help = "address to listen on, 0.0.0.0 for all; any address other than loopback needs a "
     "token"},
    {.name = "token", .type = EW_FIELD_STR, .offset = offsetof(struct opts, token),
     .metavar = "TEXT",
     .help = "secret that clients must give; default: the environment variable EW_TOKEN"},
    EW_FIELD_END};
/* clang-format on */

static volatile sig_atomic_t ended;

static void on_signal(int signal)
{
    ended = signal;
}

static void say_where(const struct opts *o, int port, bool token)
{
    const char *host =
        strcmp(o->bind, "0.0.0.0") == 0 || strcmp(o->bind, "::") == 0 ? "this-machine" : o->bind;
    const bool v6 = strchr(host, ':') != NULL;
    printf("http://%s%s%s:%d/%s\n", v6 ? "[" : "", host, v6 ? "]" : "", port,
           token ? "?token=..." : "");
    fflush(stdout);
    fprintf(stderr, "reading %s; Ctrl-C ends it\n", o->db);
}

/* Sandboxes the server: it may write the folder of the database (SQLite creates files beside it)
 * and read what the clock and the list of processes need; it cannot start programs. */
static void confine(const char *db)
{
    const char *const slash = strrchr(db, '/');
    EW_CLEANUP(ew_free_ptr) char *folder = strndup(db, slash ? (size_t)(slash - db) + 1 : 0);
    if (!folder)
        return;
    const bool files = ew_sandbox_files(
        (const char *const[]){"/proc", "/etc/localtime", "/usr/share/zoneinfo", NULL},
        (const char *const[]){*folder ? folder : ".", NULL});
    const bool programs = ew_sandbox_no_programs();
    if (!files || !programs)
        fprintf(stderr, "this kernel lacks %s: the page is not confined to its folder\n",
                files ? "seccomp" : "Landlock");
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    const char *env = getenv("EW_TOKEN");
    const struct ew_serve_opts so = {.db = o->db,
                                     .bind = o->bind,
                                     .token = o->token      ? o->token
                                              : env && *env ? env
                                                            : NULL,
                                     .port = (int)o->port};
    struct ew_serve *s;
    const ew_err opened = ew_serve_open(&so, &s);
    if (opened == EW_ERR_USAGE && !so.token)
        ew_cmd_hint(c, "EW_TOKEN=$(od -An -tx1 -N16 /dev/urandom | tr -d ' \\n') makes one");
    EW_TRY(opened);
    const struct sigaction act = {.sa_handler = on_signal};
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    signal(SIGPIPE, SIG_IGN);
    confine(o->db);
    say_where(o, ew_serve_port(s), so.token != NULL);
    ew_err e = EW_OK;
    while (e == EW_OK && !ended)
        e = ew_serve_step(s, 500);
    ew_serve_close(s);
    return ended ? EW_OK : e;
}

const struct ew_cmd ew_cmd_serve = {
    .name = "serve",
    .group = EW_CMD_STUDY,
    .summary = "live web page of the results",
    .about = "Serves a page with the progress of studies, live charts of the current run, events, "
             "and the figures so far; /report.html is the report, /metrics is for Prometheus.\n"
             "It reads the database as a separate process at low priority and never blocks a run.\n"
             "Only this machine can connect, unless --bind and a token are given. Connections are "
             "not encrypted: use it on networks that you trust.",
    .examples = "serve\n"
                "serve --db board.db --port 9000\n"
                "serve --bind 0.0.0.0 --token 4f1c...",
    .min_args = 0,
    .max_args = 0,
    .opts_size = sizeof(struct opts),
    .opts = table,
    .run = run,
};
