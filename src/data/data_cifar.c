/* SPDX-License-Identifier: Apache-2.0 */
/* Reader "cifar": the binary files of CIFAR-10 (one label, 3,072 pixels in three planes) and
 * CIFAR-100 (a coarse label before the fine one).  Krizhevsky, "Learning multiple layers of
 * features from tiny images", 2009. */
#include <stdio.h>
#include <unistd.h>

#include "data/blob.h"
#include "data/reader.h"

#define MAX_FILES 64
#define SIDE      32
#define PIXELS    (3 * SIDE * SIDE)

struct part {
    struct ew_blob files[MAX_FILES];
    int64_t first[MAX_FILES + 1]; /* number of each file's first sample */
    int n;
};

struct state {
    struct part part[2]; /* train, test */
    int64_t labels;      /* label bytes before the pixels; the last one counts */
};

static const char *const dirs10[] = {"", "cifar-10-batches-bin", NULL};
static const char *const dirs100[] = {"", "cifar-100-binary", NULL};

static bool knows(const char *path)
{
    char dir[EW_DATA_PATH];
    return ew_data_find_dir(path, dirs10, "data_batch_1.bin", dir) ||
           ew_data_find_dir(path, dirs10, "test_batch.bin", dir) ||
           ew_data_find_dir(path, dirs100, "train.bin", dir);
}

/* Adds a file to a part, if it exists. */
static ew_err add_file(struct part *p, const char *dir, const char *name, int64_t record)
{
    char path[EW_DATA_PATH];
    if (!ew_data_join(path, dir, name) || access(path, F_OK) != 0)
        return EW_OK;
    struct ew_blob *b = &p->files[p->n];
    EW_TRY(ew_blob_open(path, b));
    if (b->size == 0 || b->size % record != 0) {
        const ew_err err = ew_fail(EW_ERR_FORMAT, "%s: %lld bytes are not whole samples of %lld",
                                   path, (long long)b->size, (long long)record);
        ew_blob_close(b);
        return err;
    }
    p->first[p->n + 1] = p->first[p->n] + b->size / record;
    p->n++;
    return EW_OK;
}

static ew_err open_files(struct state *s, const char *dir, bool hundred)
{
    const int64_t record = s->labels + PIXELS;
    char name[32];
    if (hundred)
        EW_TRY(add_file(&s->part[0], dir, "train.bin", record));
    for (int i = 1; !hundred && i <= MAX_FILES; i++) {
        snprintf(name, sizeof(name), "data_batch_%d.bin", i);
        EW_TRY(add_file(&s->part[0], dir, name, record));
    }
    return add_file(&s->part[1], dir, hundred ? "test.bin" : "test_batch.bin", record);
}

static ew_err name_classes(struct ew_dataset *d, const char *dir, bool hundred)
{
    static const char *const ten[10] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                        "dog",      "frog",       "horse", "ship", "truck"};
    if (!hundred)
        return ew_dataset_name_classes(d, ten, 10);
    char path[EW_DATA_PATH];
    bool found = false;
    d->info.classes = 100;
    if (ew_data_join(path, dir, "fine_label_names.txt"))
        EW_TRY(ew_dataset_read_names(d, path, &found));
    EW_CHECK(d->info.classes == 100, EW_ERR_FORMAT, "%s: %lld names, not 100", path,
             (long long)d->info.classes);
    return EW_OK;
}

static void close_cifar(struct ew_dataset *d)
{
    struct state *s = d->state;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < s->part[i].n; k++)
            ew_blob_close(&s->part[i].files[k]);
}

static ew_err open_cifar(struct ew_dataset *d)
{
    struct state *s = ew_arena_alloc(&d->arena, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "%s: no memory", d->info.name);
    d->state = s;
    char dir[EW_DATA_PATH];
    const bool hundred = ew_data_find_dir(d->info.path, dirs100, "train.bin", dir);
    if (!hundred && !ew_data_find_dir(d->info.path, dirs10, "data_batch_1.bin", dir))
        ew_data_find_dir(d->info.path, dirs10, "test_batch.bin", dir);
    s->labels = hundred ? 2 : 1;
    ew_err err = open_files(s, dir, hundred);
    if (err == EW_OK)
        err = name_classes(d, dir, hundred);
    if (err != EW_OK)
        close_cifar(d);
    d->info.h = d->info.w = SIDE;
    d->info.c = 3;
    for (int i = 0; i < 2; i++)
        d->info.count[i] = s->part[i].first[s->part[i].n];
    return err;
}

static ew_err fetch(const struct ew_dataset *d, enum ew_split split, int64_t i, struct ew_sample *s)
{
    const struct state *t = d->state;
    const struct part *p = &t->part[split];
    const int64_t record = t->labels + PIXELS;
    static const int64_t size[3] = {SIDE, SIDE, 3};
    int k = 0;
    while (i >= p->first[k + 1])
        k++;
    EW_TRY(ew_blob_fetch(&p->files[k], (i - p->first[k]) * record, record, s));
    s->position = i * record; /* as if the files of a split were concatenated */
    s->label = s->raw.at[t->labels - 1];
    ew_sample_plain(s, size, true);
    s->pixels += t->labels;
    return EW_OK;
}

static bool file(const struct ew_dataset *d, enum ew_split split, int64_t k, char *path)
{
    const struct state *s = d->state;
    return split <= EW_SPLIT_TEST && k < s->part[split].n &&
           ew_data_join(path, s->part[split].files[k].path, "");
}

const struct ew_reader ew_data_cifar = {
    .name = "cifar",
    .layout = "CIFAR-10's data_batch_1.bin and so on, CIFAR-100's train.bin and test.bin",
    .knows = knows,
    .open = open_cifar,
    .fetch = fetch,
    .file = file,
    .close = close_cifar,
};
