/* SPDX-License-Identifier: Apache-2.0 */
/* Dropped rights are gone; kept ones remain.  Each case is a child process. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sandbox.h"
#include "ew_test.h"

enum { HELD = 42, NOT_THERE = 77 };

static int in_child(int (*body)(const char *dir), const char *dir)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(body(dir));
    int status = -1;
    EW_EXPECT(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int starts_nothing(const char *dir)
{
    (void)dir;
    if (!ew_sandbox_no_programs())
        return NOT_THERE;
    char *const argv[] = {(char[]){"true"}, NULL};
    execv("/bin/true", argv);
    if (errno != EPERM)
        return 1;
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM)
        return 2;
    return open("/proc/self/stat", O_RDONLY) >= 0 ? HELD : 3;
}

static void *try_socket(void *arg)
{
    int *const gate = arg;
    char go;
    if (read(gate[0], &go, 1) != 1)
        return arg;
    return socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM ? NULL : arg;
}

/* Threads that existed before are restricted too. */
static int binds_threads(const char *dir)
{
    (void)dir;
    int gate[2];
    pthread_t t;
    void *failed = gate;
    if (pipe(gate) != 0 || pthread_create(&t, NULL, try_socket, gate) != 0)
        return 1;
    if (!ew_sandbox_no_programs())
        return NOT_THERE;
    if (write(gate[1], "x", 1) != 1 || pthread_join(t, &failed) != 0)
        return 2;
    return failed ? 3 : HELD;
}

static bool can_open(const char *dir, const char *name, int flags)
{
    const int at = open(dir, O_PATH);
    const int fd = openat(at, name, flags, 0600);
    close(at);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static int keeps_to_its_folders(const char *dir)
{
    char open_dir[PATH_MAX], shown[PATH_MAX], own[PATH_MAX];
    snprintf(open_dir, sizeof(open_dir), "%s/open", dir);
    snprintf(shown, sizeof(shown), "%s/shown", dir);
    snprintf(own, sizeof(own), "%s/one.txt", dir);
    if (!ew_sandbox_files((const char *const[]){shown, own, "/no/such/path", NULL},
                          (const char *const[]){open_dir, NULL}))
        return NOT_THERE;
    if (!can_open(open_dir, "new", O_WRONLY | O_CREAT) || !can_open(open_dir, "new", O_RDONLY))
        return 1;
    if (!can_open(shown, "there", O_RDONLY) || can_open(shown, "there", O_WRONLY) ||
        can_open(shown, "new", O_WRONLY | O_CREAT))
        return 2;
    if (!can_open(dir, "one.txt", O_RDONLY) || can_open(dir, "two.txt", O_RDONLY))
        return 3;
    return can_open("/etc", "passwd", O_RDONLY) ? 4 : HELD;
}

static void touch(const char *dir, const char *name)
{
    EW_EXPECT(can_open(dir, name, O_WRONLY | O_CREAT));
}

static void no_programs_and_no_sockets(void)
{
    const int status = in_child(starts_nothing, "");
    if (status == NOT_THERE)
        EW_SKIP("no seccomp here");
    EW_EXPECT_INT(status, HELD);
    EW_EXPECT_INT(in_child(binds_threads, ""), HELD);
}

static void files_outside_are_out_of_reach(void)
{
    const char *const dir = ew_test_dir();
    char sub[PATH_MAX];
    const char *const names[] = {"open", "shown"};
    for (int i = 0; i < 2; i++) {
        snprintf(sub, sizeof(sub), "%s/%s", dir, names[i]);
        EW_EXPECT(mkdir(sub, 0700) == 0);
        touch(sub, "there");
    }
    touch(dir, "one.txt");
    touch(dir, "two.txt");
    const int status = in_child(keeps_to_its_folders, dir);
    if (status == NOT_THERE)
        EW_SKIP("no Landlock here");
    EW_EXPECT_INT(status, HELD);
}

EW_TEST_MAIN(EW_TEST(no_programs_and_no_sockets), EW_TEST(files_outside_are_out_of_reach))
