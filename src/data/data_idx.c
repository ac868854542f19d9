/* SPDX-License-Identifier: Apache-2.0 */
/* Reader "idx": MNIST's files and those of its successors, plain or gzip: [n, h, w] or [n, h, w, c]
 * bytes of images, [n] bytes of labels.  The magic number is 0, 0, element type (8: byte), rank;
 * the dimensions follow, big-endian (LeCun, Cortes and Burges, "The MNIST database"). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/blob.h"
#include "data/reader.h"

#define MAX_SIDE 16384

struct part {
    struct ew_blob images;
    uint8_t *labels; /* [n] */
    int64_t header;  /* bytes before the first image */
};

struct state {
    struct part part[2]; /* train, test */
};

static const char *const prefixes[2] = {"train", "t10k"};

/* ---- Finding --------------------------------------------------------------------------------- */

/* Finds an official file name in the folder or in torchvision's "raw". */
static bool find(const char *dir, const char *prefix, const char *what, char path[EW_DATA_PATH])
{
    static const char *const dirs[] = {"", "raw/"}, *const ends[] = {"", ".gz"};
    for (int i = 0; i < 4; i++) {
        const int n = snprintf(path, EW_DATA_PATH, "%s/%s%s-%s-ubyte%s", dir, dirs[i / 2], prefix,
                               what, ends[i % 2]);
        if (n > 0 && n < EW_DATA_PATH && access(path, F_OK) == 0)
            return true;
    }
    return false;
}

static bool knows(const char *path)
{
    char file[EW_DATA_PATH];
    return find(path, prefixes[0], "images-idx3", file) ||
           find(path, prefixes[1], "images-idx3", file);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int64_t big_endian(const uint8_t *p)
{
    return (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

/* Reads magic and dimensions, and checks them against the file's size. */
static ew_err read_header(const struct ew_blob *b, int64_t dim[4], int *rank)
{
    uint8_t h[20];
    EW_CHECK(b->size >= 8, EW_ERR_FORMAT, "%s: %lld bytes are no IDX file", b->path,
             (long long)b->size);
    EW_TRY(ew_blob_read(b, 0, 8, h));
    EW_CHECK(h[0] == 0 && h[1] == 0 && h[2] == 8 && h[3] >= 1 && h[3] <= 4, EW_ERR_FORMAT,
             "%s: begins with %02x%02x%02x%02x, not with an IDX file's 0000080r", b->path, h[0],
             h[1], h[2], h[3]);
    *rank = h[3];
    const int64_t header = 4 + 4 * (int64_t)*rank;
    EW_CHECK(b->size >= header, EW_ERR_FORMAT, "%s: ends in its header", b->path);
    EW_TRY(ew_blob_read(b, 0, header, h));
    int64_t bytes = 1;
    for (int i = 0; i < *rank; i++) {
        dim[i] = big_endian(h + 4 + 4 * i);
        EW_CHECK(dim[i] > 0 && !__builtin_mul_overflow(bytes, dim[i], &bytes), EW_ERR_FORMAT,
                 "%s: dimension %d is %lld", b->path, i, (long long)dim[i]);
    }
    EW_CHECK(bytes == b->size - header, EW_ERR_FORMAT,
             "%s: its header tells of %lld bytes, but %lld follow", b->path, (long long)bytes,
             (long long)(b->size - header));
    return EW_OK;
}

static ew_err open_labels(const char *path, int64_t n, uint8_t **out)
{
    struct ew_blob b;
    EW_TRY(ew_blob_open(path, &b));
    int64_t dim[4] = {0};
    int rank = 0;
    ew_err err = read_header(&b, dim, &rank);
    if (err == EW_OK && (rank != 1 || dim[0] != n))
        err = ew_fail(EW_ERR_FORMAT, "%s: %lld labels for %lld images", path, (long long)dim[0],
                      (long long)n);
    if (err == EW_OK) {
        *out = malloc((size_t)n);
        err = *out ? ew_blob_read(&b, 8, n, *out)
                   : ew_fail(EW_ERR_MEMORY, "%s: no memory for its labels", path);
    }
    ew_blob_close(&b);
    return err;
}

static ew_err open_part(struct ew_dataset *d, int which)
{
    struct state *s = d->state;
    struct part *p = &s->part[which];
    char path[EW_DATA_PATH];
    if (!find(d->info.path, prefixes[which], "images-idx3", path))
        return EW_OK; /* one of the two parts is enough */
    EW_TRY(ew_blob_open(path, &p->images));
    int64_t dim[4] = {0, 0, 0, 1};
    int rank = 0;
    EW_TRY(read_header(&p->images, dim, &rank));
    EW_CHECK(rank >= 3 && (dim[3] == 1 || dim[3] == 3) && dim[1] <= MAX_SIDE && dim[2] <= MAX_SIDE,
             EW_ERR_FORMAT, "%s: %d dimensions, the last %lld, are no images", path, rank,
             (long long)dim[rank - 1]);
    EW_CHECK(!d->info.h || (d->info.h == dim[1] && d->info.w == dim[2] && d->info.c == dim[3]),
             EW_ERR_FORMAT, "%s: its images have another size than the training images", path);
    d->info.h = dim[1];
    d->info.w = dim[2];
    d->info.c = dim[3];
    d->info.count[which] = dim[0];
    p->header = 4 + 4 * (int64_t)rank;
    EW_CHECK(find(d->info.path, prefixes[which], "labels-idx1", path), EW_ERR_NOT_FOUND,
             "%s: has no %s-labels-idx1-ubyte", d->info.path, prefixes[which]);
    return open_labels(path, dim[0], &p->labels);
}

/* Number of classes: labels from 0 without a gap, so that a stray label makes no class. */
static int64_t count_classes(const struct ew_dataset *d)
{
    const struct state *s = d->state;
    bool seen[257] = {false};
    for (int which = 0; which < 2; which++)
        for (int64_t i = 0; i < d->info.count[which]; i++)
            seen[s->part[which].labels[i]] = true;
    int64_t n = 0;
    while (seen[n])
        n++;
    return n > 1 ? n : 2;
}

static ew_err name_classes(struct ew_dataset *d)
{
    static const char *const fashion[10] = {"T-shirt", "trouser", "pullover", "dress", "coat",
                                            "sandal",  "shirt",   "sneaker",  "bag",   "boot"};
    char path[EW_DATA_PATH];
    bool found = false;
    if (ew_data_join(path, d->info.path, "classes.txt"))
        EW_TRY(ew_dataset_read_names(d, path, &found));
    if (found)
        return EW_OK;
    if (strstr(d->info.name, "fashion"))
        return ew_dataset_name_classes(d, fashion, 10);
    d->info.classes = count_classes(d);
    return EW_OK;
}

static void close_idx(struct ew_dataset *d)
{
    struct state *s = d->state;
    for (int i = 0; i < 2; i++) {
        ew_blob_close(&s->part[i].images);
        free(s->part[i].labels);
    }
}

static ew_err open_idx(struct ew_dataset *d)
{
    d->state = ew_arena_alloc(&d->arena, sizeof(struct state));
    EW_CHECK(d->state, EW_ERR_MEMORY, "%s: no memory", d->info.name);
    ew_err err = open_part(d, 0);
    if (err == EW_OK)
        err = open_part(d, 1);
    if (err == EW_OK)
        err = name_classes(d);
    if (err != EW_OK)
        close_idx(d);
    return err;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static ew_err fetch(const struct ew_dataset *d, enum ew_split split, int64_t i, struct ew_sample *s)
{
    const struct part *p = &((const struct state *)d->state)->part[split];
    const int64_t size[3] = {d->info.h, d->info.w, d->info.c};
    const int64_t bytes = size[0] * size[1] * size[2];
    EW_TRY(ew_blob_fetch(&p->images, p->header + i * bytes, bytes, s));
    s->label = p->labels[i];
    ew_sample_plain(s, size, false);
    return EW_OK;
}

static bool file(const struct ew_dataset *d, enum ew_split split, int64_t k, char *path)
{
    const struct state *s = d->state;
    return k == 0 && split <= EW_SPLIT_TEST && ew_blob_is_open(&s->part[split].images) &&
           ew_data_join(path, s->part[split].images.path, "");
}

const struct ew_reader ew_data_idx = {
    .name = "idx",
    .layout = "MNIST's files: train-images-idx3-ubyte and so on, plain or .gz",
    .knows = knows,
    .open = open_idx,
    .fetch = fetch,
    .file = file,
    .close = close_idx,
};
