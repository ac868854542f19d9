/* SPDX-License-Identifier: Apache-2.0 */
/* Opening data sets: by path, by name in the user's cache folder, by reader. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "data/image_decoder.h"
#include "data/reader.h"
#include "edgewise_data.h"

#define MAX_NAMES_FILE ((size_t)16 << 20)

#define EW_DATA(name) extern const struct ew_reader ew_data_##name;
#include "data_list.h"
#undef EW_DATA

static const struct ew_reader *const table[] = {
#define EW_DATA(name) &ew_data_##name,
#include "data_list.h"
#undef EW_DATA
};

#define READERS ((int)EW_COUNT(table))

const char *ew_split_name(enum ew_split s)
{
    static const char *const names[EW_SPLIT_COUNT] = {"train", "test", "unlabelled"};
    return names[s];
}

/* ---- Opening --------------------------------------------------------------------------------- */

ew_err ew_dataset_home(char **out)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    *out = NULL;
    if (cache && *cache == '/')
        n = asprintf(out, "%s/edgewise/data", cache);
    else if (home && *home)
        n = asprintf(out, "%s/.cache/edgewise/data", home);
    else
        return ew_fail(EW_ERR_NOT_FOUND, "neither XDG_CACHE_HOME nor HOME is set");
    EW_CHECK(n >= 0, EW_ERR_MEMORY, "no memory for a path");
    return EW_OK;
}

/* The last component of a path, without trailing slashes. */
static char *last_part(struct ew_arena *a, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t from = n;
    while (from > 0 && path[from - 1] != '/')
        from--;
    return ew_arena_printf(a, "%.*s", (int)(n - from), path + from);
}

void ew_dataset_number_classes(struct ew_dataset *d)
{
    const char **names = ew_arena_array(&d->arena, (size_t)d->info.classes, sizeof(*names));
    for (int64_t k = 0; names && k < d->info.classes; k++)
        names[k] = ew_arena_printf(&d->arena, "%lld", (long long)k);
    d->class_names = names;
}

static ew_err open_with(const struct ew_reader *r, struct ew_dataset *d)
{
    d->reader = r;
    d->info.format = r->name;
    EW_CHECK(!d->arena.failed, EW_ERR_MEMORY, "no memory for a data set");
    EW_TRY(r->open(d));
    if (!d->class_names)
        ew_dataset_number_classes(d);
    if (d->arena.failed) {
        if (r->close)
            r->close(d);
        return ew_fail(EW_ERR_MEMORY, "%s: no memory for its index", d->info.name);
    }
    return EW_OK;
}

static ew_err open_path(struct ew_dataset *d, const char *path)
{
    d->info.path = ew_arena_strdup(&d->arena, path);
    d->info.name = last_part(&d->arena, path);
    d->spec = "";
    for (int last = 0; last < 2; last++)
        for (int i = 0; i < READERS; i++)
            if (table[i]->knows && table[i]->last == last && table[i]->knows(path))
                return open_with(table[i], d);
    return ew_fail(EW_ERR_FORMAT, "%s: not a data set", path);
}

/* "synthetic" and "synthetic:size=32". */
static const struct ew_reader *named_reader(const char *what, const char **spec)
{
    for (int i = 0; i < READERS; i++) {
        const size_t n = strlen(table[i]->name);
        if (!table[i]->knows && strncmp(what, table[i]->name, n) == 0 &&
            (!what[n] || what[n] == ':')) {
            *spec = what + n + (what[n] == ':');
            return table[i];
        }
    }
    return NULL;
}

static ew_err open_any(struct ew_dataset *d, const char *what)
{
    const char *spec = NULL;
    const struct ew_reader *r = named_reader(what, &spec);
    if (r) {
        d->info.path = "";
        d->info.name = r->name;
        d->spec = ew_arena_strdup(&d->arena, spec);
        return open_with(r, d);
    }
    if (access(what, F_OK) == 0)
        return open_path(d, what);
    EW_CHECK(*what && !strchr(what, '/') && what[0] != '.', EW_ERR_NOT_FOUND,
             "%s: no such file or folder", what);
    EW_CLEANUP(ew_free_ptr) char *home = NULL;
    EW_TRY(ew_dataset_home(&home));
    const char *path = ew_arena_printf(&d->arena, "%s/%s", home, what);
    EW_CHECK(path, EW_ERR_MEMORY, "no memory for a path");
    if (access(path, F_OK) == 0)
        return open_path(d, path);
    return ew_fail(EW_ERR_NOT_FOUND, "%s: no such data set here or in %s", what, home);
}

EW_API ew_err ew_dataset_open(const char *what, struct ew_dataset **out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    *out = NULL;
    EW_NEED(what);
    struct ew_dataset *d = calloc(1, sizeof(*d));
    EW_CHECK(d, EW_ERR_MEMORY, "no memory for a data set");
    ew_arena_init(&d->arena);
    const ew_err err = open_any(d, what);
    if (err != EW_OK) {
        ew_arena_fini(&d->arena);
        free(d);
        return err;
    }
    *out = d;
    return EW_OK;
}

EW_API void ew_dataset_close(struct ew_dataset *d)
{
    if (!d)
        return;
    if (d->reader->close)
        d->reader->close(d);
    ew_arena_fini(&d->arena);
    free(d);
}

const struct ew_dataset_info *ew_dataset_info(const struct ew_dataset *d)
{
    return &d->info;
}

ew_err ew_dataset_name_classes(struct ew_dataset *d, const char *const *names, int64_t n)
{
    const char **copy = ew_arena_array(&d->arena, (size_t)n, sizeof(*copy));
    EW_CHECK(copy, EW_ERR_MEMORY, "no memory for %lld class names", (long long)n);
    for (int64_t i = 0; i < n; i++)
        copy[i] = ew_arena_strdup(&d->arena, names[i]);
    d->class_names = copy;
    d->info.classes = n;
    return EW_OK;
}

ew_err ew_dataset_read_names(struct ew_dataset *d, const char *path, bool *found)
{
    *found = access(path, F_OK) == 0;
    if (!*found)
        return EW_OK;
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    EW_CLEANUP(ew_free_ptr) const char **names = NULL;
    size_t size;
    EW_TRY(ew_file_read(path, MAX_NAMES_FILE, &text, &size));
    int n = 0, room = 0;
    char *save = NULL;
    for (char *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save)) {
        EW_TRY(ew_grow((void **)&names, &room, n + 1, sizeof(*names)));
        names[n++] = line;
    }
    EW_CHECK(n > 0, EW_ERR_FORMAT, "%s: there are no names", path);
    return ew_dataset_name_classes(d, names, n);
}

bool ew_data_join(char path[EW_DATA_PATH], const char *dir, const char *name)
{
    const int n = snprintf(path, EW_DATA_PATH, "%s%s%s", dir, *dir && *name ? "/" : "", name);
    return n >= 0 && n < EW_DATA_PATH;
}

bool ew_data_find_dir(const char *path, const char *const *dirs, const char *name,
                      char dir[EW_DATA_PATH])
{
    char file[EW_DATA_PATH];
    for (; *dirs; dirs++)
        if (ew_data_join(dir, path, *dirs) && ew_data_join(file, dir, name) &&
            access(file, F_OK) == 0)
            return true;
    return false;
}

EW_API const char *ew_dataset_class(const struct ew_dataset *d, int64_t k)
{
    if (!d)
        return "";
    return k >= 0 && k < d->info.classes ? d->class_names[k] : "?";
}

/* ---- Samples --------------------------------------------------------------------------------- */

ew_err ew_bytes_need(struct ew_bytes *b, size_t size)
{
    if (size > b->room) {
        EW_CHECK(!b->borrowed, EW_ERR_MEMORY, "no room for %zu bytes", size);
        void *p = NULL;
        const size_t room = size + size / 4;
        EW_TRY(ew_aligned_new(room, &p));
        free(b->at);
        b->at = p;
        b->room = room;
    }
    b->size = size;
    return EW_OK;
}

void ew_sample_fini(struct ew_sample *s)
{
    free(s->raw.at);
    free(s->image.at);
    ew_image_decoder_free(s->decoder);
    *s = (struct ew_sample){0};
}

static void set_geometry(struct ew_sample *s, const uint8_t *at, const int64_t size[3], bool planar)
{
    s->pixels = at;
    s->h = size[0];
    s->w = size[1];
    s->c = size[2];
    s->sy = planar ? s->w : s->w * s->c;
    s->sx = planar ? 1 : s->c;
    s->sc = planar ? s->h * s->w : 1;
}

void ew_sample_plain(struct ew_sample *s, const int64_t size[3], bool planar)
{
    set_geometry(s, s->raw.at, size, planar);
}

ew_err ew_dataset_fetch(const struct ew_dataset *d, enum ew_split split, int64_t i,
                        struct ew_sample *s)
{
    EW_CHECK(split < EW_SPLIT_COUNT && i >= 0 && i < d->info.count[split], EW_ERR_ARG,
             "%s: no sample %lld", d->info.name, (long long)i);
    s->encoded = false;
    s->file = NULL;
    s->pixels = NULL;
    s->bytes_read = s->ops_read = 0;
    s->position = -1;
    s->label = -1;
    ew_err err = d->reader->fetch(d, split, i, s);
    if (err == EW_OK && split != EW_SPLIT_UNLABELLED &&
        (s->label < 0 || s->label >= d->info.classes))
        err = ew_fail(EW_ERR_FORMAT, "label %lld is not one of %lld classes", (long long)s->label,
                      (long long)d->info.classes);
    if (err != EW_OK)
        return ew_fail_in(err, "%s: %s sample %lld", d->info.name, ew_split_name(split),
                          (long long)i);
    return EW_OK;
}

static ew_err decode_images(const struct ew_dataset *d, struct ew_sample *s, int n)
{
    struct ew_image_job jobs[EW_IMAGE_JOBS];
    for (int i = 0; i < n; i++)
        jobs[i] = (struct ew_image_job){.bytes = s[i].raw.at, .size = s[i].raw.size};
    EW_TRY(ew_image_decoder_run(&s->decoder, (int)d->info.c, jobs, n));
    for (int i = 0; i < n; i++) {
        EW_CHECK(jobs[i].err == EW_OK, jobs[i].err, "%s", jobs[i].message);
        set_geometry(&s[i], jobs[i].pixels, jobs[i].shape, false);
    }
    return EW_OK;
}

ew_err ew_dataset_decode(const struct ew_dataset *d, struct ew_sample *s)
{
    if (d->reader->decode)
        return d->reader->decode(d, s);
    if (!s->encoded)
        return EW_OK;
    const ew_err err = decode_images(d, s, 1);
    return err != EW_OK && s->file ? ew_fail_in(err, "%s", s->file) : err;
}

ew_err ew_dataset_decode_all(const struct ew_dataset *d, struct ew_sample *s, int n)
{
    bool images = !d->reader->decode && n <= EW_IMAGE_JOBS;
    for (int i = 0; i < n; i++)
        images = images && s[i].encoded;
    if (images)
        return decode_images(d, s, n);
    for (int i = 0; i < n; i++)
        EW_TRY(ew_dataset_decode(d, &s[i]));
    return EW_OK;
}

bool ew_sample_is_bad(ew_err err)
{
    return err != EW_OK && err != EW_ERR_MEMORY;
}

ew_err ew_dataset_read(const struct ew_dataset *d, enum ew_split split, int64_t i,
                       struct ew_sample *s)
{
    EW_TRY(ew_dataset_fetch(d, split, i, s));
    return ew_fail_in(ew_dataset_decode(d, s), "%s: %s sample %lld", d->info.name,
                      ew_split_name(split), (long long)i);
}
