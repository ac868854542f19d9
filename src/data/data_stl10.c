/* SPDX-License-Identifier: Apache-2.0 */
/* Reader "stl10": STL-10's binary files: 96 x 96 pixels in three planes, each column by column;
 * labels from 1 to 10 in files of their own; a hundred thousand images without labels (Coates, Lee
 * and Ng, AISTATS 2011). */
#include <stdlib.h>
#include <unistd.h>

#include "data/blob.h"
#include "data/reader.h"

#define SIDE   96
#define PIXELS (3 * SIDE * SIDE)

struct state {
    struct ew_blob images[EW_SPLIT_COUNT];
    uint8_t *labels[EW_SPLIT_COUNT];
};

static const char *const dirs[] = {"", "stl10_binary", NULL};
static const char *const image_files[EW_SPLIT_COUNT] = {"train_X.bin", "test_X.bin",
                                                        "unlabeled_X.bin"};
static const char *const label_files[EW_SPLIT_COUNT] = {"train_y.bin", "test_y.bin", NULL};

static bool knows(const char *path)
{
    char dir[EW_DATA_PATH];
    return ew_data_find_dir(path, dirs, image_files[0], dir) ||
           ew_data_find_dir(path, dirs, image_files[1], dir);
}

static ew_err read_labels(const char *dir, const char *name, int64_t n, uint8_t **out)
{
    char path[EW_DATA_PATH];
    EW_CHECK(ew_data_join(path, dir, name), EW_ERR_LIMIT, "%s: too long a path", dir);
    struct ew_blob b;
    EW_TRY(ew_blob_open(path, &b));
    ew_err err = EW_OK;
    *out = malloc((size_t)n);
    if (b.size != n)
        err = ew_fail(EW_ERR_FORMAT, "%s: %lld labels for %lld images", path, (long long)b.size,
                      (long long)n);
    else if (!*out)
        err = ew_fail(EW_ERR_MEMORY, "%s: no memory for its labels", path);
    else
        err = ew_blob_read(&b, 0, n, *out);
    ew_blob_close(&b);
    return err;
}

static ew_err open_split(struct ew_dataset *d, const char *dir, int split)
{
    struct state *s = d->state;
    struct ew_blob *b = &s->images[split];
    char path[EW_DATA_PATH];
    if (!ew_data_join(path, dir, image_files[split]) || access(path, F_OK) != 0)
        return EW_OK;
    EW_TRY(ew_blob_open(path, b));
    EW_CHECK(b->size > 0 && b->size % PIXELS == 0, EW_ERR_FORMAT,
             "%s: %lld bytes are not whole images of %d", path, (long long)b->size, PIXELS);
    d->info.count[split] = b->size / PIXELS;
    if (!label_files[split])
        return EW_OK;
    return read_labels(dir, label_files[split], d->info.count[split], &s->labels[split]);
}

static void close_stl10(struct ew_dataset *d)
{
    struct state *s = d->state;
    for (int i = 0; i < EW_SPLIT_COUNT; i++) {
        ew_blob_close(&s->images[i]);
        free(s->labels[i]);
    }
}

static ew_err open_stl10(struct ew_dataset *d)
{
    static const char *const names[10] = {"airplane", "bird",  "car",    "cat",  "deer",
                                          "dog",      "horse", "monkey", "ship", "truck"};
    d->state = ew_arena_alloc(&d->arena, sizeof(struct state));
    EW_CHECK(d->state, EW_ERR_MEMORY, "%s: no memory", d->info.name);
    char dir[EW_DATA_PATH];
    if (!ew_data_find_dir(d->info.path, dirs, image_files[0], dir))
        ew_data_find_dir(d->info.path, dirs, image_files[1], dir);
    ew_err err = ew_dataset_name_classes(d, names, 10);
    for (int i = 0; i < EW_SPLIT_COUNT && err == EW_OK; i++)
        err = open_split(d, dir, i);
    if (err != EW_OK)
        close_stl10(d);
    d->info.h = d->info.w = SIDE;
    d->info.c = 3;
    return err;
}

static ew_err fetch(const struct ew_dataset *d, enum ew_split split, int64_t i, struct ew_sample *s)
{
    const struct state *t = d->state;
    EW_TRY(ew_blob_fetch(&t->images[split], i * PIXELS, PIXELS, s));
    s->label = t->labels[split] ? t->labels[split][i] - 1 : -1;
    s->pixels = s->raw.at;
    s->h = s->w = SIDE;
    s->c = 3;
    s->sy = 1;
    s->sx = SIDE;
    s->sc = SIDE * SIDE;
    return EW_OK;
}

static bool file(const struct ew_dataset *d, enum ew_split split, int64_t k, char *path)
{
    const struct state *s = d->state;
    return k == 0 && ew_blob_is_open(&s->images[split]) &&
           ew_data_join(path, s->images[split].path, "");
}

const struct ew_reader ew_data_stl10 = {
    .name = "stl10",
    .layout = "STL-10's train_X.bin, train_y.bin and so on",
    .knows = knows,
    .open = open_stl10,
    .fetch = fetch,
    .file = file,
    .close = close_stl10,
};
