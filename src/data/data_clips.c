/* SPDX-License-Identifier: Apache-2.0 */
/* Reader "clips": video files in a folder per class (UCF50's layout), or in such folders below
 * train and test:
 *
 *   clips:path=UCF50,frames=16,stride=2,size=112
 *
 * Of each file `frames` frames, `stride` apart, from its middle; they lie one below the other. */
#include <string.h>
#include <sys/stat.h>

#include "base/field.h"
#include "data/clip_file.h"
#include "data/folder.h"
#include "data/reader.h"

#define MAX_BYTES ((int64_t)1 << 30) /* of a clip that is decoded */

struct spec {
    struct ew_folder folder;
    const char *path;
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

static ew_err open_clips(struct ew_dataset *d)
{
    struct spec *s = ew_arena_alloc(&d->arena, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory for a data set");
    EW_TRY(read_spec(d, s));
    s->folder.wanted = ew_clip_is;
    EW_TRY(ew_folder_open_parts(d, &s->folder, s->path));
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

/* The path waits in raw between fetch and decode. */
static ew_err fetch(const struct ew_dataset *d, enum ew_split split, int64_t i, struct ew_sample *s)
{
    const struct ew_folder_part *p = &((const struct spec *)d->state)->folder.part[split];
    struct stat st;
    EW_TRY(ew_bytes_need(&s->raw, EW_DATA_PATH));
    char *path = (char *)s->raw.at;
    EW_CHECK(ew_data_join(path, p->dir, p->files[i].path), EW_ERR_LIMIT, "%s: too long a path",
             p->files[i].path);
    EW_CHECK(stat(path, &st) == 0 && S_ISREG(st.st_mode), EW_ERR_IO, "%s: is no regular file",
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
    const struct ew_clip_opts *o = &((const struct spec *)d->state)->clip;
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
