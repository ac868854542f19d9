/* SPDX-License-Identifier: Apache-2.0 */
/* Programs are started with the requested arguments, streams and signals, and end on request. */
#include "base/spawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "ew_test.h"

/* Reads a pipe to its end. */
static void hear(int fd, char *out, size_t size)
{
    size_t used = 0;
    for (ssize_t n; used + 1 < size && (n = read(fd, out + used, size - 1 - used)) > 0;)
        used += (size_t)n;
    out[used] = '\0';
}

static void expect_said(const char *const *argv, const struct ew_spawn_opts *o, const char *want)
{
    struct ew_spawned p;
    char said[256];
    int status;
    if (!EW_EXPECT_OK(ew_spawn(argv, o, &p)))
        return;
    hear(p.fd[1], said, sizeof(said));
    EW_EXPECT_STR(said, want);
    EW_EXPECT_OK(ew_spawn_wait(&p, &status, NULL));
    EW_EXPECT(ew_status_is_success(status));
}

/* A shell would interpret these arguments. */
static void words(void)
{
    const struct ew_spawn_opts o = {.stream = {[1] = EW_STREAM_PIPE}};
    const char *const argv[] = {"printf", "%s|%s|%s", "a b", "$HOME; rm -rf *", "'\"", NULL};
    expect_said(argv, &o, "a b|$HOME; rm -rf *|'\"");
}

static void environment(void)
{
    const char *const given[] = {"EW_SPAWN_A=new", "EW_SPAWN_C=more", NULL};
    const struct ew_spawn_opts o = {.environment = given, .stream = {[1] = EW_STREAM_PIPE}};
    const char *const argv[] = {"sh", "-c", "echo $EW_SPAWN_A $EW_SPAWN_B $EW_SPAWN_C", NULL};
    setenv("EW_SPAWN_A", "old", 1);
    setenv("EW_SPAWN_B", "kept", 1);
    expect_said(argv, &o, "new kept more\n");
    EW_EXPECT_STR(getenv("EW_SPAWN_A"), "old");
}

static void streams(void)
{
    struct ew_spawned p;
    char said[64], *text = NULL;
    size_t size;
    int status;
    const char *const cat[] = {"cat", NULL};
    const struct ew_spawn_opts both = {.stream = {EW_STREAM_PIPE, EW_STREAM_PIPE}};
    if (EW_EXPECT_OK(ew_spawn(cat, &both, &p))) {
        EW_EXPECT(write(p.fd[0], "through", 7) == 7);
        ew_spawn_close(&p, 0);
        hear(p.fd[1], said, sizeof(said));
        EW_EXPECT_STR(said, "through");
        EW_EXPECT_OK(ew_spawn_wait(&p, &status, NULL));
    }
    const char *dir = ew_test_dir();
    char file[1024];
    snprintf(file, sizeof(file), "%s", ew_test_path("said"));
    const char *const where[] = {"sh", "-c", "pwd; cat", NULL};
    const struct ew_spawn_opts into = {.folder = dir,
                                       .stream = {EW_STREAM_NULL, EW_STREAM_FILE, EW_STREAM_NULL},
                                       .file = {[1] = file}};
    if (EW_EXPECT_OK(ew_spawn_run(where, &into, &status)) &&
        EW_EXPECT_OK(ew_file_read(file, 4096, &text, &size)))
        EW_EXPECT(strstr(text, strrchr(dir, '/')) != NULL);
    free(text);
}

static void failures(void)
{
    struct ew_spawned p;
    int status;
    char text[EW_STATUS_CHARS];
    const char *const missing[] = {"edgewise-no-such-program", "x", NULL};
    EW_EXPECT_ERR(ew_spawn(missing, NULL, &p), EW_ERR_NOT_FOUND, "edgewise-no-such-program: ");
    const struct ew_spawn_opts no_file = {.stream = {EW_STREAM_FILE}, .file = {"/no/such/file"}};
    EW_EXPECT_ERR(ew_spawn((const char *const[]){"cat", NULL}, &no_file, &p), EW_ERR_IO,
                  "/no/such/file");
    EW_EXPECT_OK(ew_spawn_run((const char *const[]){"sh", "-c", "exit 3", NULL}, NULL, &status));
    EW_EXPECT(!ew_status_is_success(status));
    ew_status_text(status, text);
    EW_EXPECT_STR(text, "exit status 3");
    EW_EXPECT_OK(
        ew_spawn_run((const char *const[]){"sh", "-c", "kill -9 $$", NULL}, NULL, &status));
    ew_status_text(status, text);
    EW_EXPECT_STR(text, "signal 9");
}

/* The first number that a program prints: the process that it started. */
static int grandchild(const struct ew_spawned *p)
{
    char said[32] = "";
    for (size_t n = 0; n + 1 < sizeof(said) && read(p->fd[1], said + n, 1) == 1; n++)
        if (said[n] == '\n')
            break;
    return atoi(said);
}

/* Waits until no process has this pid: at most ten seconds, for slow machines. */
static bool is_gone(int pid)
{
    for (int i = 0; i < 1000; i++) {
        char path[64], *text = NULL;
        size_t size;
        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        const bool there = ew_file_read(path, 4096, &text, &size) == EW_OK;
        const char *state = there ? strrchr(text, ')') : NULL;
        const bool gone = !there || (state && state[1] == ' ' && state[2] == 'Z');
        free(text);
        if (gone)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

/* Processes that a program started end with it if it has a process group. */
static void groups(void)
{
    struct ew_spawned p;
    const struct ew_spawn_opts o = {.stream = {[1] = EW_STREAM_PIPE}, .group = true};
    const char *const argv[] = {"sh", "-c", "sleep 60 & echo $!; wait", NULL};
    if (!EW_EXPECT_OK(ew_spawn(argv, &o, &p)))
        return;
    const int pid = grandchild(&p);
    EW_EXPECT(pid > 0);
    ew_spawn_end(&p, 10000);
    EW_EXPECT(is_gone(pid));
}

/* A program that ignores the request to end does not block us. */
static void stubborn(void)
{
    struct ew_spawned p;
    const struct ew_spawn_opts o = {.stream = {[1] = EW_STREAM_PIPE}, .group = true};
    const char *const argv[] = {"sh", "-c", "trap '' TERM; echo $$; exec sleep 600", NULL};
    if (!EW_EXPECT_OK(ew_spawn(argv, &o, &p)))
        return;
    const int pid = grandchild(&p);
    EW_EXPECT(pid > 0);
    ew_spawn_end(&p, 20);
    EW_EXPECT(is_gone(pid));
}

struct started {
    int pid;
};

/* Runs in a process that then exits without stopping its program. */
static void leave_behind(void *arg, void *out)
{
    struct ew_spawned p;
    struct started s = {0};
    const struct ew_spawn_opts o = {.stream = {EW_STREAM_NULL, EW_STREAM_NULL, EW_STREAM_NULL},
                                    .when_we_end = SIGKILL};
    if (ew_spawn((const char *const[]){"sleep", "60", NULL}, &o, &p) == EW_OK)
        s.pid = (int)p.pid;
    memcpy(out, &s, sizeof(s));
}

static void ends_with_us(void)
{
    struct started s;
    if (EW_EXPECT_OK(ew_spawn_function(leave_behind, NULL, &s, sizeof(s))) && EW_EXPECT(s.pid > 0))
        EW_EXPECT(is_gone(s.pid));
}

static void crash(void *arg, void *out)
{
    raise(SIGKILL);
}

static void functions(void)
{
    int out = 7;
    EW_EXPECT_ERR(ew_spawn_function(crash, NULL, &out, sizeof(out)), EW_ERR_IO, "signal 9");
}

/* A termination signal reaches the program, and we continue, to learn how it ended. */
static void signals(void)
{
    struct ew_spawned p;
    sigset_t before, now;
    int status = 0;
    char text[EW_STATUS_CHARS];
    ew_signals_hold(&before);
    const struct ew_spawn_opts o = {.stream = {[1] = EW_STREAM_PIPE}, .mask = &before};
    const char *const argv[] = {"sh", "-c",
                                "trap 'exit 5' TERM; echo 1; while :; do sleep 0.01; done", NULL};
    if (!EW_EXPECT_OK(ew_spawn(argv, &o, &p)))
        return;
    EW_EXPECT(grandchild(&p) == 1); /* the trap is installed */
    kill(getpid(), SIGTERM);
    kill(getpid(), SIGINT);
    while (ew_spawn_supervise(&p, 10000000))
        continue;
    EW_EXPECT_OK(ew_spawn_wait(&p, &status, NULL));
    ew_signals_release(&before); /* Ctrl-C was meant for it */
    ew_status_text(status, text);
    EW_EXPECT_STR(text, "exit status 5");
    sigprocmask(SIG_BLOCK, NULL, &now);
    EW_EXPECT(!sigismember(&now, SIGTERM));
}

/* Checking for a process that does not exist keeps the previous error message. */
static void nobody(void)
{
    (void)!ew_fail(EW_ERR_FORMAT, "what failed");
    EW_EXPECT(!ew_process_alive(1 << 29, "boot/1"));
    EW_EXPECT_STR(ew_error_message(), "what failed");
}

static void twice(void *arg, void *out)
{
    *(int *)out = 2 * *(const int *)arg;
}

/* A host that ignores SIGCHLD: the system discards our processes' exit statuses. */
static void no_status(void)
{
    int status, in = 6, out = 0;
    struct ew_spawned p;
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;
    sigaction(SIGCHLD, &ignore, &before);
    EW_EXPECT_OK(ew_spawn_function(twice, &in, &out, sizeof(out)));
    EW_EXPECT_INT(out, 12);
    EW_EXPECT_ERR(ew_spawn_run((const char *const[]){"true", NULL}, NULL, &status), EW_ERR_IO,
                  "this process ignores SIGCHLD");
    if (EW_EXPECT_OK(ew_spawn((const char *const[]){"true", NULL}, NULL, &p))) {
        sigset_t held;
        ew_signals_hold(&held);
        while (ew_spawn_supervise(&p, 1000000))
            continue;
        ew_signals_release(&held);
    }
    sigaction(SIGCHLD, &before, NULL);
}

EW_TEST_MAIN(EW_TEST(words), EW_TEST(environment), EW_TEST(streams), EW_TEST(failures),
             EW_TEST(groups), EW_TEST(stubborn), EW_TEST(ends_with_us), EW_TEST(functions),
             EW_TEST(signals), EW_TEST(no_status), EW_TEST(nobody))
