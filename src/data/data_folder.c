/* SPDX-License-Identifier: Apache-2.0 */
/* Reader "folder": PNG and JPEG files.  A part (train; test, val or valid; or the whole folder as
 * train, unless all folders in it are for testing) holds a folder per class, with the files inside
 * or in its folder "images" (tinyImageNet's way), or files with a list beside them: labels.txt
 * ("file class-number") or val_annotations.txt
 * ("file class-name ...", the files in "images").  Classes are in the order of their names.  A
 * folder with images only is the unlabelled split.  Finding the files is here; the lists are read
 * in folder_list.c. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "data/folder.h"
#include "data/image_file.h"
#include "data/reader.h"

#define MAX_FILE ((int64_t)256 << 20)
#define SNIFFED  16 /* files examined for the size of the images */

static const char *const train_dirs[] = {"train", "training", NULL};
static const char *const test_dirs[] = {"test", "val", "valid", "validation", NULL};

/* ---- Finding --------------------------------------------------------------------------------- */

static bool is_image(const char *name)
{
    static const char *const ends[] = {".jpg", ".jpeg", ".png", ".jpe", NULL};
    return ew_has_extension(name, ends);
}

static bool has(const char *dir, const char *name)
{
    char path[EW_DATA_PATH];
    return ew_data_join(path, dir, name) && access(path, F_OK) == 0;
}

static bool is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The first of the names that is a folder in `root`. */
static bool pick_dir(const char *root, const char *const *names, char dir[EW_DATA_PATH])
{
    for (; *names; names++)
        if (ew_data_join(dir, root, *names) && is_dir(dir))
            return true;
    return false;
}

/* True if all folders in `root` have one of the names, and there is one. */
static bool only_dirs(const char *root, const char *const *names)
{
    char dir[EW_DATA_PATH];
    DIR *d = opendir(root);
    int others = 0, known = 0;
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || !ew_data_join(dir, root, e->d_name) || !is_dir(dir))
            continue;
        bool listed = false;
        for (int i = 0; names[i]; i++)
            listed |= strcmp(names[i], e->d_name) == 0;
        known += listed;
        others += !listed;
    }
    if (d)
        closedir(d);
    return known && !others;
}

static bool knows(const char *path)
{
    return is_dir(path);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static ew_err open_part(struct ew_dataset *d, struct ew_folder *f, enum ew_split split,
                        const char *dir)
{
    f->part[split].dir = ew_arena_strdup(&d->arena, dir);
    EW_CHECK(f->part[split].dir, EW_ERR_MEMORY, "%s: no memory", dir);
    if (has(dir, "labels.txt"))
        return ew_folder_add_numbered(d, f, split);
    if (has(dir, "val_annotations.txt"))
        return ew_folder_add_annotated(d, f, split);
    return ew_folder_add_classes(d, f, split);
}

/* Determines size and channels from some of the files, ignoring unreadable ones. */
static void sniff(struct ew_dataset *d)
{
    struct ew_sample s = {0};
    bool colour = false, same = true;
    int64_t size[2] = {0};
    enum ew_split split = EW_SPLIT_TRAIN;
    while (d->info.count[split] == 0 && split < EW_SPLIT_UNLABELLED)
        split++;
    const int64_t all = d->info.count[split], n = ew_min_i64(all, SNIFFED);
    d->info.c = 0; /* as in the file */
    for (int64_t i = 0; i < n; i++) {
        if (ew_dataset_read(d, split, i * all / n, &s) != EW_OK)
            continue;
        colour = colour || s.c == 3;
        same = same && (!size[0] || (s.h == size[0] && s.w == size[1]));
        size[0] = s.h;
        size[1] = s.w;
    }
    ew_sample_fini(&s);
    d->info.c = colour || !size[0] ? 3 : 1;
    d->info.h = same ? size[0] : 0;
    d->info.w = same ? size[1] : 0;
}

ew_err ew_folder_open_parts(struct ew_dataset *d, struct ew_folder *f, const char *path)
{
    char dir[EW_DATA_PATH];
    const bool train = pick_dir(path, train_dirs, dir);
    const bool test = !train && !has(path, "labels.txt") && only_dirs(path, test_dirs);
    if (!test)
        EW_TRY(open_part(d, f, EW_SPLIT_TRAIN, train ? dir : path));
    if ((train || test) && pick_dir(path, test_dirs, dir))
        EW_TRY(open_part(d, f, EW_SPLIT_TEST, dir));
    for (int i = 0; i < EW_SPLIT_COUNT; i++)
        d->info.count[i] = f->part[i].n;
    return EW_OK;
}

static ew_err open_folder(struct ew_dataset *d)
{
    struct ew_folder *f = ew_arena_alloc(&d->arena, sizeof(*f));
    EW_CHECK(f, EW_ERR_MEMORY, "%s: no memory", d->info.name);
    d->state = f;
    f->wanted = is_image;
    EW_TRY(ew_folder_read_names(d, f));
    EW_TRY(ew_folder_open_parts(d, f, d->info.path));
    int64_t n = 0;
    for (int i = 0; i < EW_SPLIT_COUNT; i++)
        n += d->info.count[i];
    if (n == 0)
        EW_TRY(ew_folder_add_unlabelled(d, f, d->info.path));
    EW_CHECK(n + d->info.count[EW_SPLIT_UNLABELLED] > 0, EW_ERR_FORMAT,
             "%s: not a data set: no PNG or JPEG in it or in a folder per class, no labels.txt; "
             "videos in folders are clips:path=%s",
             d->info.path, d->info.path);
    EW_TRY(ew_folder_name_classes(d, f));
    if (f->left_out)
        EW_WARN("%s: pictures that are neither PNG nor JPEG are left out: %lld, such as %s",
                d->info.path, (long long)f->left_out, f->left_out_path);
    sniff(d);
    return EW_OK;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void close_fd(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static bool path_of(const struct ew_folder_part *p, int64_t i, char path[EW_DATA_PATH])
{
    return ew_data_join(path, p->dir, p->files[i].path);
}

static ew_err fetch(const struct ew_dataset *d, enum ew_split split, int64_t i, struct ew_sample *s)
{
    const struct ew_folder_part *p = &((const struct ew_folder *)d->state)->part[split];
    char path[EW_DATA_PATH];
    EW_CHECK(path_of(p, i, path), EW_ERR_LIMIT, "%s: too long a path", p->files[i].path);
    EW_CLEANUP(close_fd) int fd;
    EW_TRY(ew_file_open(path, &fd));
    struct stat st;
    EW_CHECK(fstat(fd, &st) == 0, EW_ERR_IO, "%s: %s", path, strerror(errno));
    EW_CHECK(st.st_size > 0 && st.st_size <= MAX_FILE, EW_ERR_FORMAT, "%s: %lld bytes are no image",
             path, (long long)st.st_size);
    EW_TRY(ew_bytes_need(&s->raw, (size_t)st.st_size));
    int64_t got = 0;
    for (ssize_t n = 1; got < st.st_size && n > 0; got += n, s->ops_read++) {
        while ((n = read(fd, s->raw.at + got, (size_t)(st.st_size - got))) < 0 && errno == EINTR)
            continue;
        EW_CHECK(n >= 0, EW_ERR_IO, "%s: %s", path, strerror(errno));
    }
    EW_CHECK(got == st.st_size && ew_image_is(s->raw.at, s->raw.size), EW_ERR_FORMAT,
             "%s: is neither PNG nor JPEG", path);
    s->bytes_read = got;
    s->label = p->files[i].label;
    s->encoded = true;
    s->file = p->files[i].path;
    return EW_OK;
}

static bool file(const struct ew_dataset *d, enum ew_split split, int64_t k, char *path)
{
    const struct ew_folder_part *p = &((const struct ew_folder *)d->state)->part[split];
    return k < p->n && path_of(p, k, path);
}

const struct ew_reader ew_data_folder = {
    .name = "folder",
    .layout = "PNG and JPEG files in a folder per class, tinyImageNet's layout, or with labels.txt",
    .knows = knows,
    .last = true,
    .open = open_folder,
    .fetch = fetch,
    .file = file,
};
