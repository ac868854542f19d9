/* SPDX-License-Identifier: Apache-2.0 */
/* Reader "clips": video files in a folder per class (UCF50's layout), or in such folders below
 * train and test:
 *
 *   clips:path=UCF50,frames=16,stride=2,size=112
 *
 * Takes `frames` frames of each file, `stride` apart, from its middle or a random position; they
 * are stacked along the height.  train=LIST and test=LIST are official splits, as of UCF101: a line
 * per file, "Class/name.avi" and whatever follows; other files are ignored. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/field.h"
#include "base/file.h"
#include "data/clip_file.h"
#include "data/folder.h"
#include "data/reader.h"

#define MAX_LIST  ((size_t)1 << 28)
#define MAX_BYTES ((int64_t)1 << 30) /* of a decoded clip */

struct spec {
    struct ew_folder folder;
    const char *path, *list[EW_SPLIT_COUNT];
    struct ew_clip_opts clip;
    int64_t size;
};

#define INT_FIELD(key, member, value, low, high)                                                   \
    {                                                                                              \
        .name = key, .type = EW_FIELD_INT, .offset = offsetof(struct spec, member), .def = value,  \
        .min = low, .max = high                                                                    \
    }

static const struct ew_field fields[] = {
    {.name = "path", .type = EW_FIELD_STR, .offset = offsetof(struct spec, path)},
    {.name = "train", .type = EW_FIELD_STR, .offset = offsetof(struct spec, list[EW_SPLIT_TRAIN])},
    {.name = "test", .type = EW_FIELD_STR, .offset = offsetof(struct spec, list[EW_SPLIT_TEST])},
    INT_FIELD("frames", clip.frames, "16", 1, 4096),
    INT_FIELD("stride", clip.stride, "1", 1, 4096),
    INT_FIELD("size", size, "112", 1, 4096),
    EW_FIELD_END,
};

static ew_err read_spec(struct ew_dataset *d, struct spec *s)
{
    char *line = ew_arena_strdup(&d->arena, d->spec);
    EW_CHECK(line, EW_ERR_MEMORY, "no memory for a data set");
    ew_fields_default(fields, s, sizeof(*s));
    for (char *p = line; *p; p++)
        if (*p == ',')
            *p = ' ';
    EW_TRY(ew_fail_in(ew_fields_parse(fields, line, s), "clips"));
    EW_CHECK(s->path, EW_ERR_USAGE, "clips: path=FOLDER says where they are");
    s->clip.h = s->clip.w = s->size;
    EW_CHECK(s->clip.frames * s->size * s->size * 3 <= MAX_BYTES, EW_ERR_LIMIT,
             "clips: %lld frames of %lld x %lld pixels", (long long)s->clip.frames,
             (long long)s->size, (long long)s->size);
    return EW_OK;
}

/* ---- Official splits ---- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct ew_folder_file *)a)->path,
                  ((const struct ew_folder_file *)b)->path);
}

/* Selects the files of `all`, sorted by path, that the list names, in its order. */
static ew_err read_list(struct ew_dataset *d, const char *list, const struct ew_folder_part *all,
                        struct ew_folder_part *out)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size;
    EW_TRY(ew_file_read(list, MAX_LIST, &text, &size));
    *out = (struct ew_folder_part){.dir = all->dir};
    out->files = ew_arena_array(&d->arena, (size_t)all->n + 1, sizeof(*out->files));
    EW_CHECK(out->files, EW_ERR_MEMORY, "%s: no memory", list);
    char *save = NULL;
    for (char *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save)) {
        line[strcspn(line, " \t")] = 0;
        if (!*line)
            continue;
        const struct ew_folder_file key = {.path = line};
        const struct ew_folder_file *at =
            bsearch(&key, all->files, (size_t)all->n, sizeof(key), by_path);
        EW_CHECK(at, EW_ERR_NOT_FOUND, "%s: names %s, which is not below %s", list, line, all->dir);
        EW_CHECK(out->n < all->n, EW_ERR_FORMAT, "%s: names files twice", list);
        out->files[out->n++] = *at;
    }
    EW_CHECK(out->n > 0, EW_ERR_FORMAT, "%s: names no file", list);
    return EW_OK;
}

static ew_err apply_lists(struct ew_dataset *d, struct spec *s)
{
    const bool any = s->list[EW_SPLIT_TRAIN] || s->list[EW_SPLIT_TEST];
    const struct ew_folder_part all = s->folder.part[EW_SPLIT_TRAIN];
    if (!any)
        return EW_OK;
    EW_CHECK(d->info.count[EW_SPLIT_TEST] == 0 && all.n > 0, EW_ERR_USAGE,
             "clips: %s is divided into train and test already; lists divide a folder per class",
             s->path);
    qsort(all.files, (size_t)all.n, sizeof(*all.files), by_path);
    for (int i = 0; i < EW_SPLIT_COUNT; i++) {
        s->folder.part[i].n = 0;
        if (s->list[i])
            EW_TRY(read_list(d, s->list[i], &all, &s->folder.part[i]));
        d->info.count[i] = s->folder.part[i].n;
    }
    return EW_OK;
}

static ew_err open_clips(struct ew_dataset *d)
{
    struct spec *s = ew_arena_alloc(&d->arena, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory for a data set");
    EW_TRY(read_spec(d, s));
    s->folder.wanted = ew_clip_is;
    EW_TRY(ew_folder_open_parts(d, &s->folder, s->path));
    EW_TRY(apply_lists(d, s));
    int64_t n = 0;
    for (int i = 0; i < EW_SPLIT_COUNT; i++)
        n += d->info.count[i];
    EW_CHECK(n > 0, EW_ERR_FORMAT, "%s: no video files in a folder per class", s->path);
    EW_TRY(ew_folder_name_classes(d, &s->folder));
    d->state = s;
    d->info.path = s->path;
    d->info.frames = s->clip.frames;
    d->info.h = s->clip.frames * s->clip.h;
    d->info.w = s->clip.w;
    d->info.c = 3;
    return EW_OK;
}

/* Stores the path in s->raw, for decode. */
static ew_err fetch(const struct ew_dataset *d, enum ew_split split, int64_t i, struct ew_sample *s)
{
    const struct ew_folder_part *p = &((const struct spec *)d->state)->folder.part[split];
    struct stat st;
    EW_TRY(ew_bytes_need(&s->raw, EW_DATA_PATH));
    char *path = (char *)s->raw.at;
    EW_CHECK(ew_data_join(path, p->dir, p->files[i].path), EW_ERR_LIMIT, "%s: too long a path",
             p->files[i].path);
    EW_CHECK(stat(path, &st) == 0 && S_ISREG(st.st_mode), EW_ERR_IO, "%s: not a regular file",
             path);
    s->bytes_read = st.st_size;
    s->ops_read = 1;
    s->position = -1;
    s->label = p->files[i].label;
    s->file = p->files[i].path;
    return EW_OK;
}

static ew_err decode(const struct ew_dataset *d, struct ew_sample *s)
{
    struct ew_clip_opts opts = ((const struct spec *)d->state)->clip, *o = &opts;
    o->place = s->place;
    EW_TRY(ew_bytes_need(&s->image, (size_t)(o->frames * o->h * o->w * 3)));
    EW_TRY(ew_clip_read((const char *)s->raw.at, o, s->image.at));
    s->pixels = s->image.at;
    s->h = o->frames * o->h;
    s->w = o->w;
    s->c = 3;
    s->sy = o->w * 3;
    s->sx = 3;
    s->sc = 1;
    return EW_OK;
}

static bool file(const struct ew_dataset *d, enum ew_split split, int64_t k, char *path)
{
    const struct ew_folder_part *p = &((const struct spec *)d->state)->folder.part[split];
    return k < p->n && ew_data_join(path, p->dir, p->files[k].path);
}

const struct ew_reader ew_data_clips = {
    .name = "clips",
    .layout = "video files in a folder per class: clips:path=DIR,frames=16,stride=1,size=112",
    .open = open_clips,
    .fetch = fetch,
    .decode = decode,
    .file = file,
};
