/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a job's process and listening to it. */
#include "study/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

/* Keeps the last line that is not empty; a failure's own line wins over a hint below it. */
static void take_line(const char *line, struct ew_child *out)
{
    if (*line && strncmp(line, "hint: ", 6) != 0)
        snprintf(out->said, sizeof(out->said), "%s", line);
}

/* Progress lines end in '\r'. */
static void take_text(struct ew_child *c, const char *text, ssize_t n)
{
    for (ssize_t i = 0; i < n; i++) {
        if (text[i] == '\n' || text[i] == '\r') {
            c->line[c->used] = '\0';
            take_line(c->line, c);
            c->used = 0;
        } else if (c->used + 1 < sizeof(c->line)) {
            c->line[c->used++] = text[i];
        }
    }
}

bool ew_child_listen(struct ew_child *c, int timeout_ms)
{
    struct pollfd p = {.fd = c->process.fd[STDERR_FILENO], .events = POLLIN};
    char block[4096];
    if (poll(&p, 1, timeout_ms) <= 0)
        return true;
    const ssize_t n = read(c->process.fd[STDERR_FILENO], block, sizeof(block));
    if (n > 0)
        take_text(c, block, n);
    return n > 0 || (n < 0 && errno == EINTR);
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

void ew_child_end(struct ew_child *c, bool gently)
{
    c->late = true;
    ew_spawn_signal(&c->process, gently ? SIGTERM : SIGKILL);
}

ew_err ew_child_finish(struct ew_child *c)
{
    struct rusage u;
    take_text(c, "\n", 1);
    EW_TRY(ew_spawn_wait(&c->process, &c->status, &u));
    c->cpu_s = seconds(u.ru_utime) + seconds(u.ru_stime);
    c->wall_s = (double)(ew_clock_ns() - c->start_ns) / (double)EW_NS_PER_S;
    return EW_OK;
}

ew_err ew_child_start(const char *const *argv, const char *uid, bool gently, struct ew_child *out)
{
    *out = (struct ew_child){.status = -1};
    char run[64];
    snprintf(run, sizeof(run), "EW_RUN=%s", uid);
    const char *const environment[] = {run, "EW_LOG=warn", NULL};
    /* The job ends with the study: otherwise nobody would wait for it, and the next start would run
     * it a second time at the same time. */
    const struct ew_spawn_opts o = {.path = argv[0],
                                    .environment = environment,
                                    .stream = {EW_STREAM_NULL, EW_STREAM_NULL, EW_STREAM_PIPE},
                                    .when_we_end = gently ? SIGTERM : SIGKILL};
    out->start_ns = ew_clock_ns();
    return ew_spawn(argv, &o, &out->process);
}

ew_err ew_child_run(const char *const *argv, const char *uid, struct ew_child *out)
{
    EW_TRY(ew_child_start(argv, uid, false, out));
    while (ew_child_listen(out, -1))
        ;
    return ew_child_finish(out);
}
