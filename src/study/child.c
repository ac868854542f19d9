/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a job's process and listening to it. */
#include "study/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* In the child: nothing here may allocate or lock. */
static void become(const char *const *argv, char *const *envp, int err_fd, bool gently,
                   pid_t parent)
{
    /* A study that is killed takes its job along: nobody would wait for it, and the next start
     * would run it a second time beside it. */
    prctl(PR_SET_PDEATHSIG, gently ? SIGTERM : SIGKILL);
    if (getppid() != parent)
        _exit(127);
    const int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(err_fd, 2) < 0)
        _exit(127);
    char **words;
    memcpy(&words, &argv, sizeof(words));
    execve(argv[0], words, envp);
    dprintf(2, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Our environment with EW_RUN, and quiet; release with free(). */
static char **make_environment(char *run, char *log)
{
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    char **out = calloc(n + 3, sizeof(*out));
    for (size_t i = 0; out && i < n; i++)
        if (strncmp(environ[i], "EW_RUN=", 7) != 0 && strncmp(environ[i], "EW_LOG=", 7) != 0)
            out[kept++] = environ[i];
    if (out) {
        out[kept++] = run;
        out[kept] = log;
    }
    return out;
}

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
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    char block[4096];
    if (poll(&p, 1, timeout_ms) <= 0)
        return true;
    const ssize_t n = read(c->fd, block, sizeof(block));
    if (n > 0)
        take_text(c, block, n);
    return n > 0 || (n < 0 && errno == EINTR);
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

ew_err ew_child_finish(struct ew_child *c)
{
    struct rusage u;
    take_text(c, "\n", 1);
    close(c->fd);
    while (wait4(c->pid, &c->status, 0, &u) < 0)
        EW_CHECK(errno == EINTR, EW_ERR_IO, "waiting for a job: %s", strerror(errno));
    c->cpu_s = seconds(u.ru_utime) + seconds(u.ru_stime);
    c->wall_s = (double)(ew_clock_ns() - c->start_ns) / (double)EW_NS_PER_S;
    return EW_OK;
}

ew_err ew_child_start(const char *const *argv, const char *uid, bool gently, struct ew_child *out)
{
    *out = (struct ew_child){.status = -1};
    char run[64], log[] = "EW_LOG=warn";
    int fds[2];
    snprintf(run, sizeof(run), "EW_RUN=%s", uid);
    char **envp = make_environment(run, log);
    EW_CHECK(envp, EW_ERR_MEMORY, "no memory for a job's environment");
    if (pipe2(fds, O_CLOEXEC) != 0) {
        free(envp);
        return ew_fail(EW_ERR_IO, "no pipe for a job: %s", strerror(errno));
    }
    out->start_ns = ew_clock_ns();
    const pid_t self = getpid(), pid = fork();
    if (pid == 0)
        become(argv, envp, fds[1], gently, self);
    const int error = errno;
    close(fds[1]);
    free(envp);
    out->pid = (int)pid;
    out->fd = fds[0];
    if (pid < 0)
        close(fds[0]);
    EW_CHECK(pid > 0, EW_ERR_IO, "no process for a job: %s", strerror(error));
    return EW_OK;
}

ew_err ew_child_run(const char *const *argv, const char *uid, struct ew_child *out)
{
    EW_TRY(ew_child_start(argv, uid, false, out));
    while (ew_child_listen(out, -1))
        ;
    return ew_child_finish(out);
}
