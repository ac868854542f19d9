/* SPDX-License-Identifier: Apache-2.0 */
/* Files and classes of a folder of images: from folders, or from lists. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/num.h"
#include "base/rootfs.h"
#include "base/text.h"
#include "data/folder.h"

#define MAX_LIST    ((size_t)1 << 30)
#define MAX_CLASSES 1000000

static ew_err add(struct ew_dataset *d, struct ew_folder_part *p, const char *path, int64_t label)
{
    if (p->n == p->room) {
        const int64_t room = p->room ? 2 * p->room : 256;
        struct ew_folder_file *files = ew_arena_array(&d->arena, (size_t)room, sizeof(*files));
        EW_CHECK(files, EW_ERR_MEMORY, "%s: no memory for a list of %lld files", p->dir,
                 (long long)room);
        if (p->n)
            memcpy(files, p->files, (size_t)p->n * sizeof(*files));
        p->files = files;
        p->room = room;
    }
    EW_CHECK(path, EW_ERR_MEMORY, "%s: no memory for its file names", p->dir);
    p->files[p->n++] = (struct ew_folder_file){path, label};
    return EW_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int64_t find_class(const struct ew_folder *f, const char *name)
{
    if (f->n_classes == 0)
        return -1;
    if (!f->fixed) { /* sorted */
        const char **at = bsearch(&name, f->classes, (size_t)f->n_classes, sizeof(*at), compare);
        return at ? at - f->classes : -1;
    }
    for (int i = 0; i < f->n_classes; i++)
        if (strcmp(f->classes[i], name) == 0)
            return i;
    return -1;
}

/* ---- Names ----------------------------------------------------------------------------------- */

ew_err ew_folder_read_names(struct ew_dataset *d, struct ew_folder *f)
{
    static const char *const lists[] = {"classes.txt", "wnids.txt"};
    f->max_label = -1;
    for (size_t i = 0; i < EW_COUNT(lists); i++) {
        char path[EW_DATA_PATH];
        bool found = false;
        if (ew_data_join(path, d->info.path, lists[i]))
            EW_TRY(ew_dataset_read_names(d, path, &found));
        if (!found)
            continue;
        const size_t n = (size_t)d->info.classes;
        f->classes = ew_arena_array(&d->arena, n, sizeof(*f->classes));
        EW_CHECK(f->classes && n <= MAX_CLASSES, EW_ERR_LIMIT, "%s: %zu classes", path, n);
        memcpy(f->classes, d->class_names, n * sizeof(*f->classes));
        f->n_classes = (int)n;
        f->fixed = true;
        return EW_OK;
    }
    return EW_OK;
}

ew_err ew_folder_name_classes(struct ew_dataset *d, struct ew_folder *f)
{
    if (f->n_classes) {
        EW_CHECK(f->max_label < f->n_classes, EW_ERR_FORMAT,
                 "%s: a label is %lld, but there are %d classes", d->info.path,
                 (long long)f->max_label, f->n_classes);
        return ew_dataset_name_classes(d, f->classes, f->n_classes);
    }
    d->info.classes = f->max_label + 1;
    return EW_OK;
}

/* ---- A folder per class ---------------------------------------------------------------------- */

static bool is_dir(const char *dir, const char *name)
{
    char path[EW_DATA_PATH];
    struct stat st;
    return ew_data_join(path, dir, name) && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Adds the part's folder names to the classes, unless these are fixed by a list. */
static ew_err take_classes(struct ew_dataset *d, struct ew_folder *f, const struct ew_root *root)
{
    const char *const *names = NULL;
    int n = 0;
    EW_TRY(ew_root_list(root, "/", &d->arena, &names, &n));
    f->classes = ew_arena_array(&d->arena, (size_t)n + 1, sizeof(*f->classes));
    EW_CHECK(f->classes, EW_ERR_MEMORY, "%s: no memory for its classes", root->path);
    for (int i = 0; i < n; i++)
        if (names[i][0] != '.' && is_dir(root->path, names[i]))
            f->classes[f->n_classes++] = names[i];
    qsort(f->classes, (size_t)f->n_classes, sizeof(*f->classes), compare);
    return EW_OK;
}

/* Images of other programs, cameras and phones, which are not read. */
static bool is_foreign_image(const char *name)
{
    static const char *const ends[] = {".webp", ".heic", ".heif", ".avif", ".bmp", ".gif",
                                       ".tif",  ".tiff", ".jxl",  ".jp2",  NULL};
    return ew_has_extension(name, ends);
}

/* Adds a file of a class's folder, if it is an image and not hidden (as ._photo.jpg, in which a Mac
 * keeps what it knows about photo.jpg). */
static ew_err add_file(struct ew_dataset *d, struct ew_folder *f, struct ew_folder_part *p,
                       const char *dir, const char *name, int64_t label)
{
    const bool wanted = f->wanted(name);
    if (name[0] == '.' || (!wanted && !is_foreign_image(name)))
        return EW_OK;
    const char *path = ew_arena_printf(&d->arena, "%s/%s", dir, name);
    if (wanted)
        return add(d, p, path, label);
    EW_CHECK(path, EW_ERR_MEMORY, "%s: no memory for its file names", p->dir);
    f->left_out++;
    f->left_out_path = path;
    return EW_OK;
}

/* Adds the files of a class's folder, which may be a symbolic link. */
static ew_err add_dir(struct ew_dataset *d, struct ew_folder *f, struct ew_folder_part *p,
                      const char *dir, int64_t label)
{
    char path[EW_DATA_PATH];
    struct ew_arena names_arena;
    EW_CLEANUP(ew_root_close) struct ew_root root = {.fd = -1};
    EW_CHECK(ew_data_join(path, p->dir, dir), EW_ERR_LIMIT, "%s/%s: too long a path", p->dir, dir);
    EW_TRY(ew_root_open(path, &root));
    ew_arena_init(&names_arena);
    const char *const *names = NULL;
    int n = 0;
    ew_err err = ew_root_list(&root, "/", &names_arena, &names, &n);
    for (int i = 0; i < n && err == EW_OK; i++)
        err = add_file(d, f, p, dir, names[i], label);
    ew_arena_fini(&names_arena);
    return err;
}

/* A class listed twice would have each of its images twice, with two labels. */
static ew_err check_distinct(struct ew_dataset *d, const struct ew_folder *f)
{
    const char **sorted = ew_arena_array(&d->arena, (size_t)f->n_classes + 1, sizeof(*sorted));
    EW_CHECK(sorted, EW_ERR_MEMORY, "%s: no memory for its classes", d->info.path);
    memcpy(sorted, f->classes, (size_t)f->n_classes * sizeof(*sorted));
    qsort(sorted, (size_t)f->n_classes, sizeof(*sorted), compare);
    for (int i = 1; i < f->n_classes; i++)
        EW_CHECK(strcmp(sorted[i - 1], sorted[i]) != 0, EW_ERR_FORMAT,
                 "%s: its list of classes has '%.100s' twice", d->info.path, sorted[i]);
    return EW_OK;
}

ew_err ew_folder_add_classes(struct ew_dataset *d, struct ew_folder *f, enum ew_split split)
{
    struct ew_folder_part *p = &f->part[split];
    EW_CLEANUP(ew_root_close) struct ew_root root;
    EW_TRY(ew_root_open(p->dir, &root));
    if (!f->n_classes)
        EW_TRY(take_classes(d, f, &root));
    EW_TRY(check_distinct(d, f));
    for (int k = 0; k < f->n_classes; k++) {
        if (!is_dir(p->dir, f->classes[k]))
            continue; /* a class without samples in this part */
        EW_TRY(add_dir(d, f, p, f->classes[k], k));
        const char *images = ew_arena_printf(&d->arena, "%s/images", f->classes[k]);
        EW_CHECK(images, EW_ERR_MEMORY, "%s: no memory", p->dir);
        if (is_dir(p->dir, images))
            EW_TRY(add_dir(d, f, p, images, k));
    }
    return EW_OK;
}

ew_err ew_folder_add_unlabelled(struct ew_dataset *d, struct ew_folder *f, const char *dir)
{
    struct ew_folder_part *p = &f->part[EW_SPLIT_UNLABELLED];
    p->dir = ew_arena_strdup(&d->arena, dir);
    EW_CHECK(p->dir, EW_ERR_MEMORY, "%s: no memory", dir);
    EW_TRY(add_dir(d, f, p, ".", -1));
    d->info.count[EW_SPLIT_UNLABELLED] = p->n;
    return EW_OK;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

#define SEPARATORS " \t\r,"

struct line {
    const char *file;
    char *word; /* the class */
    int number;
};

typedef ew_err take_line(struct ew_dataset *, struct ew_folder *, enum ew_split,
                         const struct line *);

/* `file class`; the file's name may have spaces. */
static void split_at_last(char *text, struct line *l)
{
    char *const first = text + strspn(text, SEPARATORS), *end = first + strlen(first);
    while (end > first && strchr(SEPARATORS, end[-1]))
        *--end = '\0';
    char *word = end;
    while (word > first && !strchr(SEPARATORS, word[-1]))
        word--;
    for (end = word; end > first && strchr(SEPARATORS, end[-1]);)
        *--end = '\0';
    l->file = first;
    l->word = word > first ? word : NULL;
}

/* `file class ...` */
static void split_at_first(char *text, struct line *l)
{
    char *save = NULL;
    l->file = strtok_r(text, SEPARATORS, &save);
    l->word = l->file ? strtok_r(NULL, SEPARATORS, &save) : NULL;
}

static bool is_below(const char *file)
{
    for (const char *at = file; *at; at += strcspn(at, "/"), at += *at == '/')
        if (strncmp(at, "..", 2) == 0 && (!at[2] || at[2] == '/'))
            return false;
    return file[0] != '/';
}

/* Calls `take` for each line of a list. */
static ew_err each_line(struct ew_dataset *d, struct ew_folder *f, enum ew_split split,
                        const char *list, void (*cut)(char *, struct line *), take_line *take)
{
    char path[EW_DATA_PATH];
    EW_CHECK(ew_data_join(path, f->part[split].dir, list), EW_ERR_LIMIT, "%s: too long a path",
             list);
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size;
    EW_TRY(ew_file_read(path, MAX_LIST, &text, &size));
    struct line l = {0};
    const size_t mark = strlen(EW_BYTE_ORDER_MARK);
    char *at = strncmp(text, EW_BYTE_ORDER_MARK, mark) == 0 ? text + mark : text;
    for (char *end; at < text + size; at = end + 1) {
        end = at + strcspn(at, "\n");
        *end = '\0';
        l.number++;
        cut(at, &l);
        if (!l.file || !*l.file || l.file[0] == '#')
            continue;
        EW_CHECK(l.word, EW_ERR_FORMAT, "%s:%d: a file without a class", path, l.number);
        EW_CHECK(is_below(l.file), EW_ERR_FORMAT, "%s:%d: '%.100s' is not below this folder", path,
                 l.number, l.file);
        EW_TRY(ew_fail_in(take(d, f, split, &l), "%s:%d", path, l.number));
    }
    return EW_OK;
}

static ew_err take_number(struct ew_dataset *d, struct ew_folder *f, enum ew_split split,
                          const struct line *l)
{
    int64_t label;
    EW_CHECK(ew_num_int(l->word, &label) && label >= 0 && label < MAX_CLASSES, EW_ERR_FORMAT,
             "'%.40s' is not a class number", l->word);
    f->max_label = ew_max_i64(f->max_label, label);
    return add(d, &f->part[split], ew_arena_strdup(&d->arena, l->file), label);
}

static ew_err take_name(struct ew_dataset *d, struct ew_folder *f, enum ew_split split,
                        const struct line *l)
{
    const int64_t label = find_class(f, l->word);
    EW_CHECK(label >= 0, EW_ERR_FORMAT, "'%.40s' is none of the %d classes", l->word, f->n_classes);
    return add(d, &f->part[split], ew_arena_printf(&d->arena, "images/%s", l->file), label);
}

ew_err ew_folder_add_numbered(struct ew_dataset *d, struct ew_folder *f, enum ew_split split)
{
    return each_line(d, f, split, "labels.txt", split_at_last, take_number);
}

ew_err ew_folder_add_annotated(struct ew_dataset *d, struct ew_folder *f, enum ew_split split)
{
    return each_line(d, f, split, "val_annotations.txt", split_at_first, take_name);
}
