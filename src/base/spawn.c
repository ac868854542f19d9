/* SPDX-License-Identifier: Apache-2.0 */
/* Programs are started by fork and exec: posix_spawn cannot tie a child's life to ours.  Between
 * the two only async-signal-safe calls are allowed: another thread may hold a lock. */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define STREAMS 3

/* ---- Starting ---- */

/* All that the child needs, prepared before the fork. */
struct start {
    const struct ew_spawn_opts *o;
    char *const *argv;
    char **envp;
    int stream[STREAMS]; /* its ends; -1: inherited */
    int failed;          /* pipe to which it writes errno if exec fails */
    pid_t parent;
};

static bool same_name(const char *a, const char *b)
{
    const size_t n = strcspn(a, "=");
    return strncmp(a, b, n) == 0 && b[n] == '=';
}

/* Our environment with overrides; borrows the strings.  NULL: no memory. */
static char **make_environment(const char *const *given)
{
    size_t n = 0, more = 0, kept = 0;
    while (environ[n])
        n++;
    while (given && given[more])
        more++;
    const char **out = calloc(n + more + 1, sizeof(*out));
    for (size_t i = 0; out && i < n; i++) {
        bool replaced = false;
        for (size_t k = 0; k < more; k++)
            replaced = replaced || same_name(given[k], environ[i]);
        if (!replaced)
            out[kept++] = environ[i];
    }
    for (size_t k = 0; out && k < more; k++)
        out[kept++] = given[k];
    char **words;
    memcpy(&words, &out, sizeof(words));
    return words;
}

/* In the child. */
static void become(const struct start *s)
{
    const struct ew_spawn_opts *o = s->o;
    bool well = true;
    if (o->when_we_end) {
        prctl(PR_SET_PDEATHSIG, o->when_we_end);
        if (getppid() != s->parent) /* we ended before prctl */
            _exit(127);
    }
    if (o->group)
        setpgid(0, 0);
    for (int i = 0; i < STREAMS; i++)
        well = well && (s->stream[i] < 0 || dup2(s->stream[i], i) == i);
    well = well && (!o->folder || chdir(o->folder) == 0);
    if (o->mask)
        sigprocmask(SIG_SETMASK, o->mask, NULL);
    signal(SIGXFSZ, SIG_DFL); /* not inherited */
    if (well && o->path)
        execve(o->path, s->argv, s->envp);
    else if (well)
        execvpe(s->argv[0], s->argv, s->envp);
    const int why = errno;
    _exit(write(s->failed, &why, sizeof(why)) == sizeof(why) ? 127 : 126);
}

/* Opens the child's end of a stream, and ours of a pipe. */
static ew_err open_stream(const struct ew_spawn_opts *o, int i, int *its, int *ours)
{
    const int flags = (i == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC) | O_CLOEXEC;
    int ends[2];
    switch (o->stream[i]) {
    case EW_STREAM_NULL:
        *its = open("/dev/null", O_RDWR | O_CLOEXEC);
        break;
    case EW_STREAM_FILE:
        *its = open(o->file[i], flags, 0666);
        EW_CHECK(*its >= 0, EW_ERR_IO, "%s: %s", o->file[i], strerror(errno));
        break;
    case EW_STREAM_PIPE:
        EW_CHECK(pipe2(ends, O_CLOEXEC) == 0, EW_ERR_IO, "no pipe: %s", strerror(errno));
        *its = ends[i == 0 ? 0 : 1];
        *ours = ends[i == 0 ? 1 : 0];
        break;
    case EW_STREAM_ERR:
        *its = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STREAMS);
        break;
    default:
        return EW_OK;
    }
    EW_CHECK(*its >= 0, EW_ERR_IO, "no stream for a program: %s", strerror(errno));
    return EW_OK;
}

static void close_all(int *fd, int n)
{
    for (int i = 0; i < n; i++) {
        if (fd[i] >= 0)
            close(fd[i]);
        fd[i] = -1;
    }
}

/* `said` is a close-on-exec pipe through which the child reports why exec failed. */
static ew_err fork_it(struct start *s, int said[2], struct ew_spawned *out)
{
    int why = 0;
    out->pid = fork();
    if (out->pid == 0)
        become(s);
    const int no_fork = errno;
    close(said[1]);
    said[1] = -1;
    EW_CHECK(out->pid > 0, EW_ERR_IO, "%s: no process: %s", s->argv[0], strerror(no_fork));
    ssize_t n;
    while ((n = read(said[0], &why, sizeof(why))) < 0 && errno == EINTR)
        continue;
    if (n != sizeof(why))
        return EW_OK;
    while (waitpid(out->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    out->pid = 0;
    return ew_fail(why == ENOENT ? EW_ERR_NOT_FOUND : EW_ERR_IO, "%s: %s", s->argv[0],
                   strerror(why));
}

ew_err ew_spawn(const char *const *argv, const struct ew_spawn_opts *o, struct ew_spawned *out)
{
    static const struct ew_spawn_opts plain = {0};
    struct start s = {.o = o ? o : &plain, .stream = {-1, -1, -1}, .parent = getpid()};
    int said[2] = {-1, -1};
    *out = (struct ew_spawned){.fd = {-1, -1, -1}, .group = s.o->group};
    memcpy(&s.argv, &argv, sizeof(s.argv)); /* exec does not write to argv */
    EW_CLEANUP(ew_free_ptr) char **envp = make_environment(s.o->environment);
    EW_CHECK(envp, EW_ERR_MEMORY, "no memory for a program's environment");
    s.envp = envp;
    ew_err e = EW_OK;
    for (int i = 0; e == EW_OK && i < STREAMS; i++)
        e = open_stream(s.o, i, &s.stream[i], &out->fd[i]);
    if (e == EW_OK && pipe2(said, O_CLOEXEC) != 0)
        e = ew_fail(EW_ERR_IO, "no pipe: %s", strerror(errno));
    s.failed = said[1];
    if (e == EW_OK)
        e = fork_it(&s, said, out);
    close_all(s.stream, STREAMS);
    close_all(said, 2);
    if (e != EW_OK)
        close_all(out->fd, STREAMS);
    return e;
}

/* ---- Waiting ---- */

void ew_spawn_close(struct ew_spawned *p, int stream)
{
    close_all(&p->fd[stream], 1);
}

void ew_spawn_signal(const struct ew_spawned *p, int signal)
{
    if (p->pid > 0)
        kill(p->group ? -p->pid : p->pid, signal);
}

ew_err ew_spawn_wait(struct ew_spawned *p, int *status, struct rusage *use)
{
    struct rusage unused;
    close_all(p->fd, STREAMS);
    *status = 0;
    pid_t ended;
    while ((ended = wait4(p->pid, status, 0, use ? use : &unused)) < 0 && errno == EINTR)
        continue;
    p->pid = 0; /* the PID may be reused now */
    EW_CHECK(ended >= 0, EW_ERR_IO,
             "how a program ended is unknown: this process ignores SIGCHLD, or waits elsewhere");
    return EW_OK;
}

/* True also if there is nothing to wait for: another thread has, or SIGCHLD is ignored. */
static bool has_ended(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return errno == ECHILD;
    return info.si_pid == pid;
}

void ew_spawn_end(struct ew_spawned *p, int patience_ms)
{
    const int64_t until = ew_clock_ns() + patience_ms * (EW_NS_PER_S / 1000);
    int status;
    if (p->pid <= 0) {
        close_all(p->fd, STREAMS);
        return;
    }
    ew_spawn_signal(p, SIGTERM);
    while (!has_ended(p->pid) && ew_clock_ns() < until)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (!has_ended(p->pid))
        ew_spawn_signal(p, SIGKILL);
    ew_spawn_wait(p, &status, NULL);
}

ew_err ew_spawn_run(const char *const *argv, const struct ew_spawn_opts *o, int *status)
{
    struct ew_spawned p;
    EW_TRY(ew_spawn(argv, o, &p));
    return ew_spawn_wait(&p, status, NULL);
}

bool ew_status_is_success(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void ew_status_text(int status, char out[EW_STATUS_CHARS])
{
    const bool by_itself = WIFEXITED(status);
    snprintf(out, EW_STATUS_CHARS, "%s %d", by_itself ? "exit status" : "signal",
             by_itself ? WEXITSTATUS(status) : WTERMSIG(status));
}

/* ---- Signals ---- */

static const int held[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP};

static sigset_t set_of(const int *signals, size_t n)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < n; i++)
        sigaddset(&set, signals[i]);
    return set;
}

void ew_signals_hold(sigset_t *before)
{
    const sigset_t set = set_of(held, EW_COUNT(held));
    sigprocmask(SIG_BLOCK, &set, before);
}

bool ew_spawn_supervise(const struct ew_spawned *p, int64_t pause_ns)
{
    const int awaited[] = {SIGCHLD, SIGTERM, SIGHUP};
    const sigset_t set = set_of(awaited, EW_COUNT(awaited));
    const struct timespec pause = {.tv_sec = pause_ns / EW_NS_PER_S,
                                   .tv_nsec = pause_ns % EW_NS_PER_S};
    if (has_ended(p->pid))
        return false;
    const int signal = pause_ns < 0 ? sigwaitinfo(&set, NULL) : sigtimedwait(&set, NULL, &pause);
    if (signal == SIGTERM || signal == SIGHUP)
        ew_spawn_signal(p, signal);
    return !has_ended(p->pid);
}

bool ew_signals_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    for (size_t i = 0; i < EW_COUNT(held); i++)
        if (held[i] != SIGCHLD && sigismember(&pending, held[i]) == 1)
            return true;
    return false;
}

void ew_signals_release(const sigset_t *before)
{
    const int meant[] = {SIGINT, SIGQUIT};
    const sigset_t set = set_of(meant, EW_COUNT(meant));
    const struct timespec now = {0, 0};
    while (sigtimedwait(&set, NULL, &now) > 0)
        continue;
    sigprocmask(SIG_SETMASK, before, NULL);
}

/* ---- Functions in child processes ---- */

ew_err ew_spawn_function(void (*f)(void *arg, void *out), void *arg, void *out, size_t size)
{
    int ends[2], status = -1;
    EW_ASSERT(size <= 4096);
    EW_CHECK(pipe2(ends, O_CLOEXEC) == 0, EW_ERR_IO, "no pipe: %s", strerror(errno));
    fflush(NULL); /* or buffered output would be written twice */
    const pid_t pid = fork();
    if (pid == 0) {
        f(arg, out);
        _exit(write(ends[1], out, size) == (ssize_t)size ? 0 : 1);
    }
    const int no_fork = errno;
    close(ends[1]);
    ssize_t n = -1;
    while (pid > 0 && (n = read(ends[0], out, size)) < 0 && errno == EINTR)
        continue;
    const bool came = n == (ssize_t)size;
    close(ends[0]);
    EW_CHECK(pid > 0, EW_ERR_IO, "no process: %s", strerror(no_fork));
    pid_t ended;
    while ((ended = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        continue;
    char text[EW_STATUS_CHARS];
    ew_status_text(status, text);
    /* without a status (the host ignores SIGCHLD) only the answer counts */
    EW_CHECK(came && (ended < 0 || ew_status_is_success(status)), EW_ERR_IO,
             "a process of our own failed: %s", text);
    return EW_OK;
}
