/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise agent: the remote end of a launcher (study/link.h).  Runs this program with the
 * arguments that come over standard input, and sends back its output.  It opens no port; when its
 * input is closed it ends, with all processes that it started. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/owned.h"
#include "base/spawn.h"
#include "cli/cmd.h"
#include "study/epoch_feed.h"
#include "study/link.h"
#include "study/machine.h"

#define ALIVE_NS    (2 * EW_NS_PER_S)
#define POLL_MS     500
#define END_WAIT_MS 5000 /* grace period of a command before it is killed */
#define WORDS_MAX   256
#define BLOCK       32768

struct opts {
    const char *folder, *unit;
};

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "folder", .type = EW_FIELD_STR, .offset = offsetof(struct opts, folder), .def = ".",
     .metavar = "DIR", .help = "folder in which jobs run and find their data; created if missing"},
    {.name = "unit", .type = EW_FIELD_STR, .offset = offsetof(struct opts, unit),
     .metavar = "NAME", .help = "name of this machine in the results"},
    EW_FIELD_END};
/* clang-format on */

struct agent {
    struct ew_frames io;
    char self[512];            /* this program's path */
    struct ew_spawned process; /* the running command; pid 0: none */
    int64_t alive_ns;          /* when the last "alive" was sent */
    struct ew_epoch_feed feed; /* of the running command */
};

/* ---- Greeting ------------------------------------------------------------------------------ */

static int64_t free_disk(void)
{
    struct statvfs v;
    return statvfs(".", &v) == 0 ? (int64_t)v.f_bavail * (int64_t)v.f_frsize : -1;
}

/* Prints the fields of the machine, one per line. */
static void print_machine(FILE *out, const struct ew_machine_row *m)
{
    for (const struct ew_field *f = ew_record_kind(EW_RECORD_MACHINE)->fields; f->name; f++) {
        char text[2048];
        if (ew_field_absent(f, m) || strcmp(f->name, "id") == 0)
            continue;
        ew_field_print(f, m, text, sizeof(text));
        text[strcspn(text, "\n")] = '\0';
        fprintf(out, "%s=%s\n", f->name, text);
    }
}

/* The text of the "hello" message: protocol, version, device, free disk space and the machine,
 * whose unit --unit may replace. */
static ew_err describe(struct ew_board *b, struct ew_arena *a, const char *unit, char **text)
{
    struct ew_machine_row m;
    size_t size;
    EW_TRY(ew_machine_read(b, a, &m));
    FILE *out = open_memstream(text, &size);
    EW_CHECK(out, EW_ERR_MEMORY, "no memory for the machine");
    fprintf(out, "protocol=%d\nagent=%s\ndevice=%s\n", EW_LINK_PROTOCOL, EW_VERSION, m.unit);
    if (free_disk() >= 0)
        fprintf(out, "disk=%lld\n", (long long)free_disk());
    if (unit)
        m.unit = unit;
    print_machine(out, &m);
    EW_CHECK(ew_memstream_close(out, text), EW_ERR_MEMORY, "no memory for the machine");
    return EW_OK;
}

static ew_err say_hello(struct agent *g, const char *unit)
{
    struct ew_board *b = NULL;
    struct ew_arena a;
    char *text = NULL;
    EW_TRY(ew_board_open(&(struct ew_board_opts){.root = NULL}, &b));
    ew_arena_init(&a);
    ew_err err = describe(b, &a, unit, &text);
    if (err == EW_OK)
        err = ew_frames_put_text(&g->io, "hello", text);
    free(text);
    ew_arena_fini(&a);
    ew_board_close(b);
    return err;
}

/* ---- Running --------------------------------------------------------------------------------- */

static ew_err start(struct agent *g, const struct ew_frame *f)
{
    const char *argv[WORDS_MAX] = {g->self};
    int n = 1;
    EW_CHECK(!g->process.pid, EW_ERR_USAGE, "a command is running already");
    for (char *p = f->data; p < f->data + f->size; p += strlen(p) + 1) {
        EW_CHECK(n + 1 < WORDS_MAX, EW_ERR_LIMIT, "more than %d words", WORDS_MAX - 2);
        argv[n++] = p;
    }
    const struct ew_spawn_opts o = {.path = g->self,
                                    .stream = {EW_STREAM_NULL, EW_STREAM_PIPE, EW_STREAM_PIPE},
                                    .when_we_end = SIGTERM};
    ew_epoch_feed_begin(&g->feed, f->data, f->size);
    return ew_spawn(argv, &o, &g->process);
}

static ew_err pass_on(struct agent *g, int stream)
{
    char block[BLOCK];
    const ssize_t n = read(g->process.fd[stream], block, sizeof(block));
    if (n > 0)
        return ew_frames_put(&g->io, stream == 1 ? "out" : "err", block, (size_t)n);
    if (n == 0 || errno != EINTR)
        ew_spawn_close(&g->process, stream);
    return EW_OK;
}

/* Both pipes are closed: the command has ended, or is about to. */
static ew_err finish(struct agent *g)
{
    int status = 0;
    char text[16];
    EW_TRY(ew_spawn_wait(&g->process, &status, NULL));
    g->process.pid = 0;
    snprintf(text, sizeof(text), "%d",
             WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return ew_frames_put_text(&g->io, "end", text);
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Refuses names outside of the current folder. */
static ew_err check_name(const char *name)
{
    EW_CHECK(*name && *name != '.' && !strchr(name, '/'), EW_ERR_USAGE,
             "'%.60s' is not a file name", name);
    return EW_OK;
}

static ew_err take_file(const struct ew_frame *f)
{
    const size_t n =
        strlen(f->data) + 1; /* the data is NUL-terminated at the latest after its last byte */
    EW_CHECK(n <= f->size, EW_ERR_FORMAT, "a file without a name");
    EW_TRY(check_name(f->data));
    return ew_file_write(f->data, f->data + n, f->size - n);
}

static ew_err send_file(struct agent *g, const char *name)
{
    char *data;
    size_t size;
    EW_TRY(check_name(name));
    EW_TRY(ew_file_read(name, EW_FRAME_LIMIT, &data, &size));
    const ew_err err = ew_frames_put(&g->io, "data", data, size);
    free(data);
    return err;
}

static ew_err obey(struct agent *g, const struct ew_frame *f)
{
    if (strcmp(f->type, "run") == 0)
        return start(g, f);
    if (strcmp(f->type, "file") == 0)
        return take_file(f);
    if (strcmp(f->type, "fetch") == 0)
        return send_file(g, f->data);
    if (strcmp(f->type, "drop") == 0) {
        EW_TRY(check_name(f->data));
        unlink(f->data);
        return EW_OK;
    }
    return ew_fail(EW_ERR_FORMAT, "unknown message '%s'", f->type);
}

static ew_err take_messages(struct agent *g, bool *end)
{
    struct ew_frame f;
    bool there = true;
    EW_TRY(ew_frames_read(&g->io, end));
    while (there) {
        EW_TRY(ew_frames_next(&g->io, &f, &there));
        if (there && obey(g, &f) != EW_OK) {
            char why[EW_LINK_TEXT];
            snprintf(why, sizeof(why), "%s", ew_error_message());
            EW_TRY(ew_frames_put_text(&g->io, "failed", why));
        }
    }
    return EW_OK;
}

/* Polls once; *end is set when the connection is closed. */
static ew_err turn(struct agent *g, bool *end)
{
    const bool waiting =
        ew_frames_waiting(&g->io); /* if so, the command's output stays in its pipes */
    struct pollfd p[4] = {{.fd = g->io.in, .events = POLLIN},
                          {.fd = waiting ? -1 : g->process.fd[1], .events = POLLIN},
                          {.fd = waiting ? -1 : g->process.fd[2], .events = POLLIN},
                          {.fd = waiting ? g->io.out : -1, .events = POLLOUT}};
    if (poll(p, 4, POLL_MS) < 0)
        EW_CHECK(errno == EINTR, EW_ERR_IO, "poll: %s", strerror(errno));
    for (int i = 1; i < 3; i++)
        if (g->process.fd[i] >= 0 && p[i].revents)
            EW_TRY(pass_on(g, i));
    if (g->process.pid && g->process.fd[1] < 0 && g->process.fd[2] < 0)
        EW_TRY(finish(g));
    if (p[0].revents)
        EW_TRY(take_messages(g, end));
    if (ew_clock_ns() - g->alive_ns > ALIVE_NS) {
        g->alive_ns = ew_clock_ns();
        EW_TRY(ew_frames_put(&g->io, "alive", "", 0));
        if (g->process.pid)
            EW_TRY(ew_epoch_feed_send(&g->feed, &g->io));
    }
    return ew_frames_flush(&g->io);
}

static ew_err serve(struct agent *g, const char *unit)
{
    bool end = false;
    EW_TRY(say_hello(g, unit));
    if (unit)
        setenv("EW_UNIT", unit, 1);
    unsetenv("EW_RUN");
    ew_err err = EW_OK;
    while (err == EW_OK && !end)
        err = turn(g, &end);
    return end ? EW_OK : err;
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    struct agent g = {.process = {.fd = {-1, -1, -1}}};
    EW_CHECK(!isatty(STDIN_FILENO), EW_ERR_USAGE,
             "'study --on' starts the agent on other machines; it is not started by hand");
    const ssize_t n = readlink("/proc/self/exe", g.self, sizeof(g.self) - 1);
    EW_CHECK(n > 0, EW_ERR_IO, "/proc/self/exe: %s", strerror(errno));
    EW_TRY(ew_folder_make(o->folder));
    EW_CHECK(chdir(o->folder) == 0, EW_ERR_IO, "%s: %s", o->folder, strerror(errno));
    signal(SIGPIPE, SIG_IGN);
    EW_TRY(ew_frames_open(&g.io, dup(STDIN_FILENO), dup(STDOUT_FILENO), "the other end"));
    const ew_err err = serve(&g, o->unit);
    ew_spawn_end(&g.process, END_WAIT_MS);
    ew_frames_close(&g.io);
    return err;
}

const struct ew_cmd ew_cmd_agent = {
    .name = "agent",
    .group = EW_CMD_STUDY,
    .summary = "counterpart of --on on other machines; not started by hand",
    .about = "Started by 'edgewise study --on' through a machine's launcher; not by hand.\n"
             "It opens no port. When its input is closed, it ends together with all processes that "
             "it started.",
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
};
