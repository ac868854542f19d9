/* SPDX-License-Identifier: Apache-2.0 */
/* The video decoder process.  It is forked rather than executed, so that it works in any program
 * that uses the library, and closes all inherited descriptors but its socket.  A process that has
 * read a file to its end is reused: forking takes longer than decoding a short clip. */
#include "data/video_decoder.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/fork_server.h"
#include "base/sandbox.h"
#include "data/av_libraries.h"
#include "data/av_source.h"

#define FILE_MS    30000 /* timeout of a file's next frame */
#define LIVE_MS    10000
#define PATH_BYTES 4096

struct ew_video {
    char name[PATH_BYTES];
    struct ew_video_opts o;
    struct ew_server d;
    bool live, over;
};

/* ---- Inside the process ---- */

/* A camera or host may be silent for long, and the parent's end is noticed with the next frame. */
static void end_with_group(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Enters the sandbox: no access for a file, which is open already; otherwise what FFmpeg needs to
 * open a camera or reach a host. */
static void confine(bool live, const char *name)
{
    const struct rlimit none = {0, 0};
    static const char *const nothing[] = {NULL};
    const char *const some[] = {"/etc", "/sys", "/usr/lib", "/lib", "/run/systemd/resolve", NULL};
    const char *const device[] = {strncmp(name, "/dev/", 5) == 0 ? name : NULL, NULL};
    setrlimit(RLIMIT_CORE, &none);
    if (live)
        end_with_group();
    ew_sandbox_files(live ? some : nothing, device);
    if (!live || device[0])
        ew_sandbox_no_programs();
}

/* Sends the frames of one source; false: the parent has gone. */
static bool give_source(int fd, const char *name, int file, const struct ew_video_opts *o)
{
    struct ew_av_source *s = NULL;
    struct ew_video_frame f = {0};
    bool end = false;
    ew_err given = EW_OK, e = ew_av_open(name, file, o, &s);
    while (e == EW_OK && !end && given == EW_OK) {
        e = ew_av_next(s, &f, &end);
        if (e == EW_OK && !end)
            given = ew_video_wire_give(fd, EW_VIDEO_WIRE_FRAME, &f, NULL);
    }
    if (given == EW_OK)
        given = e == EW_OK ? ew_video_wire_give(fd, EW_VIDEO_WIRE_END, NULL, "")
                           : ew_video_wire_give(fd, EW_VIDEO_WIRE_ERROR, NULL, ew_error_message());
    ew_av_close(s);
    ew_video_frame_fini(&f);
    return given == EW_OK;
}

static bool serve_one(int fd, bool *confined)
{
    struct ew_video_wire_request r;
    char name[PATH_BYTES];
    int file = -1;
    if (ew_server_read(fd, &r, sizeof(r), -1) != EW_OK || r.magic != EW_VIDEO_WIRE_MAGIC ||
        r.path_bytes >= PATH_BYTES || ew_server_read(fd, name, r.path_bytes, -1) != EW_OK ||
        ew_server_take_fd(fd, &file) != EW_OK)
        return false;
    name[r.path_bytes] = 0;
    if (!*confined)
        confine(file < 0, name);
    *confined = true;
    const bool more = give_source(fd, name, file, &r.o);
    if (file >= 0)
        close(file);
    return more;
}

static void serve(int socket, void *memory, size_t size)
{
    bool confined = false;
    while (serve_one(socket, &confined))
        continue;
}

/* ---- Idle processes ---- */

static struct ew_idle_servers idle = EW_IDLE_SERVERS_INIT;

static struct ew_fork_server decoders = EW_FORK_SERVER_INIT(serve);

/* ---- A source ---- */

bool ew_video_is_live(const char *name)
{
    return strncmp(name, "/dev/", 5) == 0 || strstr(name, "://") != NULL;
}

static ew_err ask(struct ew_video *f, int file)
{
    const struct ew_video_wire_request r = {
        .magic = EW_VIDEO_WIRE_MAGIC, .path_bytes = (uint32_t)strlen(f->name), .o = f->o};
    EW_TRY(ew_server_write(f->d.fd, &r, sizeof(r)));
    EW_TRY(ew_server_write(f->d.fd, f->name, r.path_bytes));
    return ew_server_send_fd(f->d.fd, file);
}

/* An idle process may have been killed: retries with a new one. */
static ew_err begin(struct ew_video *f, int file)
{
    if (!f->live && ew_idle_take(&idle, &f->d)) {
        if (ask(f, file) == EW_OK)
            return EW_OK;
        ew_fork_server_stop(&decoders, &f->d, 0);
    }
    EW_TRY(ew_fork_server_start(&decoders, 0, &f->d));
    const ew_err e = ask(f, file);
    if (e != EW_OK)
        ew_fork_server_stop(&decoders, &f->d, 0);
    return e;
}

ew_err ew_video_open(const char *name, const struct ew_video_opts *o, struct ew_video **out)
{
    int file = -1;
    const bool live = ew_video_is_live(name);
    EW_CHECK(strlen(name) < PATH_BYTES, EW_ERR_LIMIT, "%s: too long a path", name);
    EW_TRY(ew_fail_in(ew_video_opts_check(o), "%s", name));
    EW_TRY(ew_fail_in(ew_av_libraries(), "%s", name));
    if (!live)
        EW_TRY(ew_file_open(name, &file));
    struct ew_video *f = calloc(1, sizeof(*f));
    ew_err e = f ? EW_OK : ew_fail(EW_ERR_MEMORY, "%s: no memory", name);
    if (f) {
        snprintf(f->name, sizeof(f->name), "%s", name);
        f->o = *o;
        f->live = live;
        e = begin(f, file);
    }
    if (file >= 0)
        close(file);
    if (e != EW_OK)
        free(f);
    else
        *out = f;
    return ew_fail_in(e, "%s", name);
}

/* Handles the end of the process. */
static ew_err died(struct ew_video *f, const char *what)
{
    const int signal = ew_fork_server_stop(&decoders, &f->d, 1000); /* it is ending already */
    f->over = true;
    f->d.pid = 0;
    if (signal)
        return ew_fail(EW_ERR_FORMAT, "%s: its decoder died of signal %d (%s)", f->name, signal,
                       strsignal(signal));
    return ew_fail(EW_ERR_FORMAT, "%s: %s", f->name, what);
}

ew_err ew_video_next(struct ew_video *f, struct ew_video_frame *out, bool *end)
{
    char text[EW_VIDEO_WIRE_TEXT], what[EW_VIDEO_WIRE_TEXT];
    enum ew_video_wire_kind kind = EW_VIDEO_WIRE_END;
    *end = f->over;
    if (f->over)
        return EW_OK;
    if (ew_video_wire_take(f->d.fd, &f->o, f->live ? LIVE_MS : FILE_MS, out, &kind, text) !=
        EW_OK) {
        snprintf(what, sizeof(what), "%s", ew_error_message());
        return died(f, what);
    }
    f->over = *end = kind != EW_VIDEO_WIRE_FRAME;
    if (kind == EW_VIDEO_WIRE_ERROR)
        return ew_fail(EW_ERR_FORMAT, "%s", text);
    return EW_OK;
}

void ew_video_close(struct ew_video *f)
{
    if (!f)
        return;
    const bool kept = f->d.pid && f->over && !f->live && ew_idle_put(&idle, &f->d);
    if (f->d.pid && !kept)
        ew_fork_server_stop(&decoders, &f->d, 0);
    free(f);
}

int ew_video_process(const struct ew_video *f)
{
    return (int)f->d.pid;
}
