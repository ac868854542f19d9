/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a job's process and listening to it. */
#include "study/child.h"

#include <errno.h>
#include <fcntl.h>
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

/* Reads standard error to its end; progress lines end in '\r'. */
static void listen(int fd, struct ew_child *out)
{
    char line[EW_CHILD_TEXT], block[4096];
    size_t used = 0;
    for (;;) {
        const ssize_t n = read(fd, block, sizeof(block));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        for (ssize_t i = 0; i < n; i++) {
            if (block[i] == '\n' || block[i] == '\r') {
                line[used] = '\0';
                take_line(line, out);
                used = 0;
            } else if (used + 1 < sizeof(line)) {
                line[used++] = block[i];
            }
        }
    }
    line[used] = '\0';
    take_line(line, out);
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static ew_err wait_for(pid_t pid, struct ew_child *out)
{
    struct rusage u;
    while (wait4(pid, &out->status, 0, &u) < 0)
        EW_CHECK(errno == EINTR, EW_ERR_IO, "waiting for a job: %s", strerror(errno));
    out->cpu_s = seconds(u.ru_utime) + seconds(u.ru_stime);
    return EW_OK;
}

ew_err ew_child_run(const char *const *argv, const char *uid, bool gently, struct ew_child *out)
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
    const int64_t start = ew_clock_ns();
    const pid_t self = getpid(), pid = fork();
    if (pid == 0)
        become(argv, envp, fds[1], gently, self);
    const int error = errno;
    close(fds[1]);
    free(envp);
    ew_err err = EW_OK;
    if (pid < 0) {
        err = ew_fail(EW_ERR_IO, "no process for a job: %s", strerror(error));
    } else {
        listen(fds[0], out);
        err = wait_for(pid, out);
    }
    close(fds[0]);
    out->wall_s = (double)(ew_clock_ns() - start) / (double)EW_NS_PER_S;
    return err;
}
