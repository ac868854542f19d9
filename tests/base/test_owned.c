/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that may be removed because we created them, and all others. */
#include "base/owned.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "ew_test.h"

static bool there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void put(const char *path)
{
    EW_EXPECT_OK(ew_file_write(path, "x", 1));
}

/* The path of `name` in the test's folder. */
static void at(const char *name, char out[512])
{
    snprintf(out, 512, "%s", ew_test_path(name));
}

static void removes_what_it_made(void)
{
    char dir[512], file[600], outside[512], link[600];
    at("owned/deep/stage", dir);
    at("outside", outside);
    mkdir(outside, 0777);
    snprintf(file, sizeof(file), "%s/file", outside);
    put(file);
    EW_EXPECT_OK(ew_owned_make(dir));
    snprintf(link, sizeof(link), "%s/link", dir);
    EW_EXPECT_INT(symlink(outside, link), 0);
    EW_EXPECT_OK(ew_owned_make(dir)); /* empties it */
    EW_EXPECT(!there(link));
    EW_EXPECT_INT(symlink(outside, link), 0);
    EW_EXPECT(ew_owned_remove(dir));
    EW_EXPECT(!there(dir));
    EW_EXPECT(there(file)); /* the target of the link */
}

static void leaves_what_is_not_its_own(void)
{
    char dir[512], file[600], mark[600];
    at("theirs", dir);
    mkdir(dir, 0777);
    snprintf(file, sizeof(file), "%s/file", dir);
    snprintf(mark, sizeof(mark), "%s/%s", dir, EW_OWNED_MARK);
    put(file);
    EW_EXPECT(!ew_owned_remove(dir));
    EW_EXPECT_ERR(ew_owned_make(dir), EW_ERR_IO, "left alone");
    put(mark); /* a file with the marker's name, but not ours */
    EW_EXPECT(!ew_owned_remove(dir));
    unlink(mark);
    EW_EXPECT_INT(mkdir(mark, 0777), 0);
    EW_EXPECT(!ew_owned_remove(dir));
    EW_EXPECT(there(file));
    EW_EXPECT(!ew_owned_remove(file));
    EW_EXPECT_ERR(ew_owned_make(file), EW_ERR_IO, "left alone");
    EW_EXPECT(there(file));
}

/* Another process's folder: refused while it runs, then removed. */
static void respects_one(const char *name, const char *process)
{
    char dir[512], mark[600];
    int made[2], end[2];
    at(name, dir);
    snprintf(mark, sizeof(mark), "%s/%s", dir, EW_OWNED_MARK);
    if (!EW_EXPECT(pipe(made) == 0 && pipe(end) == 0))
        return;
    const pid_t pid = fork();
    if (pid == 0) {
        char c = ew_owned_make(dir) == EW_OK ? 'y' : 'n';
        FILE *f = process ? fopen(mark, "r+") : NULL;
        if (f) {
            fprintf(f, "edgewise made this folder and may remove it: process %s\n", process);
            fclose(f);
        }
        close(end[1]);
        (void)!write(made[1], &c, 1);
        (void)!read(end[0], &c, 1);
        _exit(0);
    }
    char c = 0;
    close(end[0]);
    EW_EXPECT_INT(read(made[0], &c, 1), 1);
    EW_EXPECT_INT(c, 'y');
    EW_EXPECT_ERR(ew_owned_make(dir), EW_ERR_IO, "is at work there");
    EW_EXPECT(!ew_owned_remove(dir));
    close(end[1]);
    siginfo_t info;
    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT); /* ended, but not reaped: a zombie */
    EW_EXPECT_OK(ew_owned_make(dir));
    EW_EXPECT(ew_owned_remove(dir));
    waitpid(pid, NULL, 0);
    close(made[0]);
    close(made[1]);
}

static void respects_the_living(void)
{
    char own[64], stamp[EW_STAMP_CHARS];
    respects_one("living", NULL);
    /* on another machine, and in another container with our process ID */
    respects_one("elsewhere", "4194304 another-boot-0000-0000-0000-000000000000/1");
    ew_process_stamp((int)getpid(), stamp);
    snprintf(own, sizeof(own), "%d %.40s", (int)getpid(), stamp);
    respects_one("container", own);
}

/* A forked child owns nothing of what its parent has made. */
static void child_owns_nothing(void)
{
    char dir[512];
    int status = -1;
    at("parents", dir);
    EW_EXPECT_OK(ew_owned_make(dir));
    const pid_t pid = fork();
    if (pid == 0)
        _exit(ew_owned_remove(dir) ? 1 : 0);
    EW_EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    EW_EXPECT(ew_owned_remove(dir));
}

static void publishes_without_replacing(void)
{
    char from[512], to[512], inside[600];
    at("from", from);
    at("to", to);
    mkdir(from, 0777);
    mkdir(to, 0777); /* an empty folder, which plain rename would replace */
    snprintf(inside, sizeof(inside), "%s/file", from);
    put(inside);
    EW_EXPECT_ERR(ew_owned_publish(from, to), EW_ERR_IO, "File exists");
    EW_EXPECT(!strstr(ew_error_message(), from)); /* callers say whether they keep it */
    EW_EXPECT(there(inside));
    rmdir(to);
    EW_EXPECT_OK(ew_owned_publish(from, to));
    EW_EXPECT(there(to) && !there(from));
}

/* Killed before the marker was in place. */
static void removes_unmarked(void)
{
    char dir[512], temp[600], file[600];
    at("unmarked", dir);
    snprintf(temp, sizeof(temp), "%s/" EW_OWNED_MARK ".edgewise-0.tmp", dir);
    snprintf(file, sizeof(file), "%s/file", dir);
    mkdir(dir, 0777);
    put(temp);
    EW_EXPECT_OK(ew_owned_make(dir));
    EW_EXPECT(ew_owned_remove(dir));
    mkdir(dir, 0777);
    put(temp);
    EW_EXPECT(ew_owned_remove_unmarked(dir));
    EW_EXPECT(!there(dir));
    mkdir(dir, 0777);
    put(file);
    EW_EXPECT(!ew_owned_remove_unmarked(dir));
    EW_EXPECT(there(file));
}

static void fills_a_folder(void)
{
    char dir[512], file[600], mark[600];
    at("filled", dir);
    snprintf(file, sizeof(file), "%s/file", dir);
    snprintf(mark, sizeof(mark), "%s/%s", dir, EW_OWNED_MARK);
    mkdir(dir, 0777);
    EW_EXPECT_OK(ew_owned_fill(dir)); /* interrupted */
    put(file);
    EW_EXPECT_OK(ew_owned_fill(dir));
    EW_EXPECT(!there(file) && there(mark));
    put(file);
    ew_owned_filled(dir, true);
    EW_EXPECT(there(file) && !there(mark));
    EW_EXPECT_ERR(ew_owned_fill(dir), EW_ERR_IO, "not an empty folder");
    EW_EXPECT(there(file));
    unlink(file);
    EW_EXPECT_OK(ew_owned_fill(dir));
    put(file);
    ew_owned_filled(dir, false);
    EW_EXPECT(there(dir) && !there(file) && !there(mark));
}

EW_TEST_MAIN(EW_TEST(removes_unmarked), EW_TEST(fills_a_folder), EW_TEST(removes_what_it_made),
             EW_TEST(leaves_what_is_not_its_own), EW_TEST(respects_the_living),
             EW_TEST(child_owns_nothing), EW_TEST(publishes_without_replacing))
