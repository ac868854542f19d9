/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing whole files, and reads below a root directory. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rootfs.h"
#include "ew_test.h"

static void expect_content(const char *path, const char *want)
{
    char *data = NULL;
    size_t size = 0;
    if (!EW_EXPECT_OK(ew_file_read(path, 1 << 20, &data, &size)))
        return;
    EW_EXPECT_STR(data, want);
    EW_EXPECT_INT(size, strlen(want));
    free(data);
}

static int entries(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n - 2;
}

static void reads(void)
{
    char *data = NULL;
    size_t size = 0;
    expect_content(ew_test_file("a.txt", "hello", 5), "hello");
    expect_content(ew_test_file("empty", "", 0), "");
    EW_EXPECT_OK(ew_file_read(ew_test_path("a.txt"), 5, &data, &size));
    free(data);
    data = NULL;
    EW_EXPECT_ERR(ew_file_read(ew_test_path("a.txt"), 4, &data, &size), EW_ERR_LIMIT,
                  "a.txt: 5 bytes, more than the limit of 4");
    EW_EXPECT_ERR(ew_file_read(ew_test_path("none"), 9, &data, &size), EW_ERR_NOT_FOUND,
                  "none: No such file");
    EW_EXPECT_ERR(ew_file_read(ew_test_dir(), 9, &data, &size), EW_ERR_IO, "is a folder");
    EW_EXPECT_SAME(data, NULL);
}

/* Files without a size, as in /proc, are read completely; devices and pipes, which may not end or
 * block, are refused. */
static void reads_without_size(void)
{
    char *data = NULL;
    size_t size = 0;
    EW_EXPECT_ERR(ew_file_read("/dev/zero", 1 << 20, &data, &size), EW_ERR_IO,
                  "not a regular file");
    EW_EXPECT_INT(mkfifo(ew_test_path("fifo"), 0666), 0);
    EW_EXPECT_ERR(ew_file_read(ew_test_path("fifo"), 9, &data, &size), EW_ERR_IO,
                  "not a regular file");
    EW_EXPECT_INT(ew_file_head(ew_test_path("fifo"), (char[4]){0}, 4), 0);
    EW_EXPECT_OK(ew_file_read("/proc/self/status", 1 << 20, &data, &size));
    EW_EXPECT(size > 100 && size == strlen(data));
    free(data);
}

static void writes_whole(void)
{
    const char *path = ew_test_path("out.bin");
    EW_EXPECT_OK(ew_file_write(path, "one", 3));
    expect_content(path, "one");
    chmod(path, 0640);
    EW_EXPECT_OK(ew_file_write(path, "twotwo", 6));
    expect_content(path, "twotwo");
    struct stat st;
    EW_EXPECT_INT(stat(path, &st), 0);
    EW_EXPECT_INT(st.st_mode & 0777, 0640);
    EW_EXPECT_OK(ew_file_write(path, NULL, 0));
    expect_content(path, "");
    EW_EXPECT_OK(ew_file_write("/dev/null", "x", 1));
    EW_EXPECT_ERR(ew_file_write(ew_test_path("no/such/dir"), "x", 1), EW_ERR_NOT_FOUND, "such/dir");
    EW_EXPECT_ERR(ew_file_write(ew_test_dir(), "x", 1), EW_ERR_IO, "is a folder");
}

static void failure_keeps_the_old_file(void)
{
    const char *path = ew_test_file("kept", "old", 3);
    const int before = entries(ew_test_dir());
    struct ew_file_out o;
    EW_EXPECT_OK(ew_file_out_open(path, &o));
    fputs("half", o.f);
    EW_EXPECT_INT(entries(ew_test_dir()), before + 1);
    ew_file_out_abort(&o);
    EW_EXPECT_INT(entries(ew_test_dir()), before);
    expect_content(path, "old");
    ew_file_out_abort(&o); /* a second call is allowed */
    EW_EXPECT_ERR(ew_file_write("/dev/full", "x", 1), EW_ERR_IO, "/dev/full: No space left");
}

static void link_is_kept(void)
{
    const char *file = ew_test_file("real", "old", 3), *link = ew_test_path("link");
    EW_EXPECT_INT(symlink("real", link), 0);
    EW_EXPECT_OK(ew_file_write(link, "new", 3));
    expect_content(file, "new");
    struct stat st;
    EW_EXPECT_INT(lstat(link, &st), 0);
    EW_EXPECT(S_ISLNK(st.st_mode));
}

/* Security: in a run's folder, whoever can write there could redirect our writes by a link. */
static void link_is_replaced(void)
{
    struct stat st;
    const char *file = ew_test_file("theirs", "old", 3), *link = ew_test_path("own");
    EW_EXPECT_INT(symlink("theirs", link), 0);
    EW_EXPECT_OK(ew_file_replace(link, "new", 3));
    expect_content(file, "old");
    expect_content(link, "new");
    EW_EXPECT(lstat(link, &st) == 0 && S_ISREG(st.st_mode));
    unlink(link);
    EW_EXPECT_INT(mkfifo(link, 0666), 0);
    EW_EXPECT_OK(ew_file_replace(link, "new", 3)); /* and does not wait for a reader */
    expect_content(link, "new");
    EW_EXPECT_ERR(ew_file_replace(ew_test_path(""), "new", 3), EW_ERR_IO, "is a folder");
}

/* Files left by a killed process are removed when the same file is written again; those of an
 * active writer, and anything but plain files, are left alone. */
static void leftovers_go(void)
{
    const char *path = ew_test_path("made");
    const char *dead = ew_test_file("made.edgewise-0.tmp", "half", 4);
    EW_EXPECT_OK(ew_file_write(path, "whole", 5));
    EW_EXPECT(access(dead, F_OK) != 0);

    const int busy = open(ew_test_file("made.edgewise-0.tmp", "half", 4), O_RDONLY);
    EW_EXPECT_INT(flock(busy, LOCK_EX), 0);
    EW_EXPECT_INT(mkdir(ew_test_path("made.edgewise-1.tmp"), 0777), 0);
    EW_EXPECT_INT(symlink("made", ew_test_path("made.edgewise-2.tmp")), 0);
    const char *other = ew_test_file("made.edgewise-3.tmp", "half", 4);
    ew_test_file("made.3127-0.tmp", "mine", 4);
    EW_EXPECT_OK(ew_file_write(path, "again", 5));
    expect_content(path, "again");
    EW_EXPECT(access(other, F_OK) != 0);
    ew_test_file("made.edgewise-3.tmp", "half", 4);
    ew_file_sweep(ew_test_path("made"));
    EW_EXPECT(access(ew_test_path("made.edgewise-0.tmp"), F_OK) == 0);
    EW_EXPECT(access(ew_test_path("made.edgewise-1.tmp"), F_OK) == 0);
    EW_EXPECT(access(ew_test_path("made.edgewise-2.tmp"), F_OK) == 0);
    EW_EXPECT(access(ew_test_path("made.edgewise-3.tmp"), F_OK) != 0);
    expect_content(ew_test_path("made.3127-0.tmp"), "mine");
    close(busy);
    ew_file_sweep(ew_test_path("made"));
    EW_EXPECT(access(ew_test_path("made.edgewise-0.tmp"), F_OK) != 0);
    expect_content(ew_test_path("made"), "again");
    /* Of two writers the second was killed, the first completed. */
    EW_EXPECT_INT(rmdir(ew_test_path("made.edgewise-1.tmp")), 0);
    const char *second = ew_test_file("made.edgewise-1.tmp", "half", 4);
    EW_EXPECT_OK(ew_file_write(path, "again", 5));
    EW_EXPECT(access(second, F_OK) != 0);
    ew_test_file("made.edgewise-1.tmp", "half", 4);
    ew_file_sweep(path);
    EW_EXPECT(access(second, F_OK) != 0);
}

/* Two concurrent writers have separate temporary files; the last one to finish wins. */
static void two_writers(void)
{
    const char *path = ew_test_path("both");
    struct ew_file_out a, b;
    EW_EXPECT_OK(ew_file_out_open(path, &a));
    EW_EXPECT_OK(ew_file_out_open(path, &b));
    fputs("first", a.f);
    fputs("second", b.f);
    EW_EXPECT_OK(ew_file_out_commit(&b));
    expect_content(path, "second");
    EW_EXPECT_OK(ew_file_out_commit(&a));
    expect_content(path, "first");
}

/* A name of maximum length leaves no room for a suffix. */
static void longest_name(void)
{
    char name[NAME_MAX + 1];
    memset(name, 'n', NAME_MAX);
    name[NAME_MAX] = 0;
    const char *path = ew_test_path(name);
    EW_EXPECT_OK(ew_file_write(path, "text", 4));
    expect_content(path, "text");
}

/* ---- Reads below a root ---------------------------------------------------------------------- */

/* A board with links as in sysfs, and some that try to leave the root. */
static struct ew_root make_board(void)
{
    static const char *const dirs[] = {"board", "board/sys", "board/sys/class", "board/sys/devices",
                                       "board/sys/devices/hwmon3"};
    for (size_t i = 0; i < EW_COUNT(dirs); i++)
        mkdir(ew_test_path(dirs[i]), 0777);
    ew_test_file("secret", "outside", 7);
    ew_test_file("board/sys/devices/hwmon3/in1_input", "5032\n", 5);
    ew_test_file("board/sys/devices/hwmon3/name", "ina3221 \n", 9);
    static const char *const links[][2] = {
        {"../devices/hwmon3", "board/sys/class/hwmon3"},
        {"/sys/devices/hwmon3", "board/sys/class/absolute"},
        {"../../../secret", "board/sys/out"},
        {"/../secret", "board/sys/out2"},
        {"loop", "board/sys/loop"},
    };
    for (size_t i = 0; i < EW_COUNT(links); i++)
        if (symlink(links[i][0], ew_test_path(links[i][1])) != 0)
            EW_EXPECT_INT(errno, EEXIST); /* created by an earlier case */
    struct ew_root r;
    EW_EXPECT_OK(ew_root_open(ew_test_path("board"), &r));
    return r;
}

static void reads_below_the_root(void)
{
    EW_CLEANUP(ew_root_close) struct ew_root r = make_board();
    char buf[64];
    int64_t v = 0;
    EW_EXPECT_OK(ew_root_read(&r, "/sys/class/hwmon3/name", buf, sizeof(buf)));
    EW_EXPECT_STR(buf, "ina3221");
    EW_EXPECT_OK(ew_root_read_int(&r, "sys/class/absolute/in1_input", &v));
    EW_EXPECT_INT(v, 5032);
    EW_EXPECT_OK(ew_root_read_int(&r, "sys/./class/../class//hwmon3/in1_input", &v));
    EW_EXPECT(ew_root_has(&r, "sys/class"));
    EW_EXPECT(!ew_root_has(&r, "sys/clas"));
    EW_EXPECT_ERR(ew_root_read_int(&r, "sys/class/hwmon3/name", &v), EW_ERR_FORMAT,
                  "'ina3221' is not a whole number");
    EW_EXPECT_ERR(ew_root_read(&r, "sys/class/hwmon3/name", buf, 4), EW_ERR_LIMIT, "name");
    EW_EXPECT_ERR(ew_root_read(&r, "sys/nothing", buf, sizeof(buf)), EW_ERR_NOT_FOUND,
                  "board/sys/nothing: No such file");
    EW_EXPECT_ERR(ew_root_read(&r, "sys/class", buf, sizeof(buf)), EW_ERR_IO, "directory");
}

static void never_leaves_the_root(void)
{
    EW_CLEANUP(ew_root_close) struct ew_root r = make_board();
    static const char *const paths[] = {"../secret", "sys/../../secret", "sys/out", "sys/out2",
                                        "/../secret"};
    char buf[64];
    for (size_t i = 0; i < EW_COUNT(paths); i++) {
        EW_EXPECT_ERR(ew_root_read(&r, paths[i], buf, sizeof(buf)), EW_ERR_IO, paths[i]);
        EW_EXPECT(!ew_root_has(&r, paths[i]));
    }
    EW_EXPECT_ERR(ew_root_read(&r, "sys/loop", buf, sizeof(buf)), EW_ERR_IO, "symbolic links");
    char longer[5000];
    memset(longer, 'a', sizeof(longer));
    longer[300] = '\0';
    EW_EXPECT_ERR(ew_root_read(&r, longer, buf, sizeof(buf)), EW_ERR_IO, "too long");
    longer[300] = 'a';
    longer[sizeof(longer) - 1] = '\0';
    EW_EXPECT_ERR(ew_root_read(&r, longer, buf, sizeof(buf)), EW_ERR_IO, "aaa");
    struct ew_root none;
    EW_EXPECT_ERR(ew_root_open(ew_test_path("no-board"), &none), EW_ERR_NOT_FOUND, "no-board");
}

static void lists_sorted(void)
{
    EW_CLEANUP(ew_root_close) struct ew_root r = make_board();
    struct ew_arena a;
    ew_arena_init(&a);
    const char *const *names = NULL;
    int n = 0;
    EW_EXPECT_OK(ew_root_list(&r, "sys/class/hwmon3", &a, &names, &n));
    if (EW_EXPECT_INT(n, 2)) {
        EW_EXPECT_STR(names[0], "in1_input");
        EW_EXPECT_STR(names[1], "name");
        EW_EXPECT_SAME(names[2], NULL);
    }
    EW_EXPECT_OK(ew_root_list(&r, "/", &a, &names, &n));
    EW_EXPECT_INT(n, 1);
    EW_EXPECT_ERR(ew_root_list(&r, "sys/none", &a, &names, &n), EW_ERR_NOT_FOUND, "sys/none");
    ew_arena_fini(&a);
}

EW_TEST_MAIN(EW_TEST(reads), EW_TEST(reads_without_size), EW_TEST(writes_whole),
             EW_TEST(failure_keeps_the_old_file), EW_TEST(link_is_kept), EW_TEST(link_is_replaced),
             EW_TEST(leftovers_go), EW_TEST(two_writers), EW_TEST(longest_name),
             EW_TEST(reads_below_the_root), EW_TEST(never_leaves_the_root), EW_TEST(lists_sorted))
