/* SPDX-License-Identifier: Apache-2.0 */
/* Staging folders and helper programs. */
#include "data/staging.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/owned.h"
#include "base/spawn.h"
#include "base/text.h"

/* ---- Folders --------------------------------------------------------------------------------- */

/* Removes the owned folder around `path`. */
static void remove_around(const char *path)
{
    char folder[EW_DATA_PATH];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 0, path);
    ew_owned_remove(folder);
}

void ew_staging_remove(const char *path)
{
    if (*path)
        remove_around(path);
}

static bool is_gone(const char *pid)
{
    char *end;
    const long n = strtol(pid, &end, 10);
    return n > 0 && *end == '\0' && kill((pid_t)n, 0) != 0 && errno == ESRCH;
}

/* Removes staging folders of processes that have ended: ".name.kind.PID". */
static void remove_stale(const char *dir, const char *prefix)
{
    DIR *d = opendir(dir);
    const size_t n = strlen(prefix);
    for (const struct dirent *e; d && (e = readdir(d));) {
        char path[EW_DATA_PATH];
        if (strncmp(e->d_name, prefix, n) == 0 && ew_data_join(path, dir, e->d_name) &&
            !ew_owned_remove(path) && is_gone(e->d_name + n))
            ew_owned_remove_unmarked(path);
    }
    if (d)
        closedir(d);
}

ew_err ew_staging_new(const char *to, const char *kind, char path[EW_DATA_PATH])
{
    char dir[EW_DATA_PATH], folder[EW_DATA_PATH], prefix[300], name[320];
    const char *slash = strrchr(to, '/'), *base = slash ? slash + 1 : to;
    path[0] = '\0';
    EW_CHECK(*base && strlen(base) < 200, EW_ERR_ARG, "%s: no name for a folder", to);
    snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - to) : 1, slash ? to : ".");
    if (!*dir)
        strcpy(dir, "/");
    EW_TRY(ew_folder_make(dir));
    snprintf(prefix, sizeof(prefix), ".%s.%s.", base, kind);
    remove_stale(dir, prefix);
    snprintf(name, sizeof(name), "%s%d", prefix, (int)getpid());
    EW_CHECK(ew_data_join(folder, dir, name), EW_ERR_LIMIT, "%s: too long a path", to);
    EW_TRY(ew_owned_make(folder));
    EW_CHECK(ew_data_join(path, folder, "set"), EW_ERR_LIMIT, "%s: too long a path", to);
    if (mkdir(path, 0777) == 0)
        return EW_OK;
    const ew_err err = ew_fail(EW_ERR_IO, "%s: %s", path, strerror(errno));
    ew_owned_remove(folder);
    path[0] = '\0';
    return err;
}

/* ---- Downloads ------------------------------------------------------------------------------- */

static ew_err downloads_of(const char *set, char dir[EW_DATA_PATH])
{
    EW_CLEANUP(ew_free_ptr) char *home = NULL;
    EW_TRY(ew_dataset_home(&home));
    const int n = snprintf(dir, EW_DATA_PATH, "%s/.downloads/%s", home, set);
    EW_CHECK(n > 0 && n < EW_DATA_PATH, EW_ERR_LIMIT, "%s: too long a path", home);
    return EW_OK;
}

ew_err ew_staging_downloads(const char *set, const char *name, char path[EW_DATA_PATH])
{
    char dir[EW_DATA_PATH];
    EW_TRY(downloads_of(set, dir));
    struct stat st;
    if (lstat(dir, &st) != 0) /* keeps partial downloads of earlier attempts */
        EW_TRY(ew_owned_make(dir));
    EW_CHECK(ew_data_join(path, dir, name), EW_ERR_LIMIT, "%s: too long a path", dir);
    return EW_OK;
}

/* Removes a folder that contains nothing but the ownership marker. */
static void remove_empty(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
             strcmp(e->d_name, EW_OWNED_MARK) != 0;
    if (d)
        closedir(d);
    if (d && n == 0)
        ew_owned_remove(dir);
}

void ew_staging_end_downloads(const char *set, bool keep)
{
    char dir[EW_DATA_PATH];
    if (downloads_of(set, dir) != EW_OK)
        return;
    if (keep)
        remove_empty(dir);
    else
        ew_owned_remove(dir);
    *strrchr(dir, '/') = '\0';
    rmdir(dir); /* if it was the last one */
}

/* ---- Programs -------------------------------------------------------------------------------- */

/* The last line of the program's output. */
static void last_line(const char *path, char line[200])
{
    char *text = NULL;
    size_t n = 0;
    line[0] = '\0';
    if (ew_file_read(path, (size_t)16 << 20, &text, &n) != EW_OK)
        return;
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        text[--n] = '\0';
    const char *at = strrchr(text, '\n');
    snprintf(line, 200, "%s", at ? at + 1 : text);
    free(text);
}

ew_err ew_staging_run(const char *const *argv, const char *dir, const char *out)
{
    char said[EW_DATA_PATH], full[EW_DATA_PATH], line[200];
    EW_CHECK(realpath(dir, full) && ew_data_join(said, full, "said.log"), EW_ERR_IO, "%s: %s", dir,
             strerror(errno));
    char target[EW_DATA_PATH] = "/dev/null";
    if (out) /* the program runs in another folder */
        EW_CHECK(ew_data_join(target, full, strrchr(out, '/') + 1), EW_ERR_LIMIT,
                 "too long a path");
    const struct ew_spawn_opts o = {.folder = full,
                                    .stream = {EW_STREAM_NULL, EW_STREAM_FILE, EW_STREAM_FILE},
                                    .file = {NULL, target, said}};
    int status;
    EW_TRY(ew_spawn_run(argv, &o, &status));
    if (ew_status_is_success(status))
        return EW_OK;
    last_line(said, line);
    return ew_fail(EW_ERR_IO, "%s %s failed%s%s", argv[0], argv[1], *line ? ": " : "", line);
}

ew_err ew_staging_only(const char *dir, const char *end, char path[EW_DATA_PATH])
{
    DIR *d = opendir(dir);
    bool found = false;
    for (const struct dirent *e; d && !found && (e = readdir(d));)
        found = ew_ends_with(e->d_name, end) && ew_data_join(path, dir, e->d_name);
    if (d)
        closedir(d);
    EW_CHECK(found, EW_ERR_NOT_FOUND, "%s: no file ends in %s", dir, end);
    return EW_OK;
}
