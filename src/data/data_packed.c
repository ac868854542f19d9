/* SPDX-License-Identifier: Apache-2.0 */
/* Reader "packed": files of `data pack`; the layout is in packed.h, the writer in pack.c. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "data/blob.h"
#include "data/packed.h"
#include "data/reader.h"

#define MAX_CLASSES 1000000
#define MAX_SAMPLES ((uint64_t)1 << 31)
#define MAX_INDEX   ((uint64_t)64 << 30)

struct state {
    struct ew_blob blob;
    const uint8_t *index; /* [train, test, unlabelled][EW_PACK_ENTRY] */
    int64_t first[EW_SPLIT_COUNT];
};

static bool knows(const char *path)
{
    char magic[8] = "";
    return ew_file_head(path, magic, 8) == 8 && memcmp(magic, EW_PACK_MAGIC, 8) == 0;
}

/* ---- Opening --------------------------------------------------------------------------------- */

struct header {
    uint64_t samples, index_at, names_at, names_size, sum;
};

static ew_err check_header(const uint8_t *h, const struct ew_blob *b, struct header *out)
{
    const uint64_t version = ew_get_le(h + 8, 4);
    EW_CHECK(version == EW_PACK_VERSION || version == EW_PACK_CLIPS, EW_ERR_UNSUPPORTED,
             "a packed file of version %llu, this program reads %d and %d",
             (unsigned long long)version, EW_PACK_VERSION, EW_PACK_CLIPS);
    EW_CHECK(ew_get_le(h + 120, 8) == ew_hash_of(h, 120), EW_ERR_FORMAT,
             "its header is damaged (checksum)");
    EW_CHECK(ew_get_le(h + 80, 8) == (uint64_t)b->size, EW_ERR_FORMAT,
             "%lld bytes long, it should be %llu", (long long)b->size,
             (unsigned long long)ew_get_le(h + 80, 8));
    *out = (struct header){.index_at = ew_get_le(h + 56, 8),
                           .names_at = ew_get_le(h + 64, 8),
                           .names_size = ew_get_le(h + 72, 8),
                           .sum = ew_get_le(h + 88, 8)};
    const uint64_t size = (uint64_t)b->size;
    for (int i = 0; i < EW_SPLIT_COUNT; i++) {
        const uint64_t n = ew_get_le(h + 32 + 8 * i, 8);
        EW_CHECK(n <= MAX_SAMPLES, EW_ERR_FORMAT, "tells of %llu samples", (unsigned long long)n);
        out->samples += n;
    }
    EW_CHECK(out->index_at <= size && out->names_at <= size &&
                 out->samples * EW_PACK_ENTRY <= MAX_INDEX &&
                 out->names_at - out->index_at == out->samples * EW_PACK_ENTRY &&
                 out->names_size == size - out->names_at,
             EW_ERR_FORMAT, "its index lies outside of it");
    return EW_OK;
}

static ew_err read_names(struct ew_dataset *d, const char *names, uint64_t size, int64_t classes)
{
    const char **list = ew_arena_array(&d->arena, (size_t)classes + 1, sizeof(*list));
    EW_CHECK(list, EW_ERR_MEMORY, "no memory for %lld class names", (long long)classes);
    const char *at = names, *end = names + size;
    for (int64_t i = 0; i <= classes; i++) {
        const char *zero = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
        EW_CHECK(zero, EW_ERR_FORMAT, "its list of names ends early");
        list[i] = at;
        at = zero + 1;
    }
    d->info.name = list[0];
    d->class_names = list + 1;
    return EW_OK;
}

static ew_err read_index(struct ew_dataset *d, const uint8_t *h, const struct header *x)
{
    struct state *s = d->state;
    const uint64_t bytes = x->samples * EW_PACK_ENTRY + x->names_size;
    uint8_t *index = ew_arena_alloc(&d->arena, (size_t)bytes + 1);
    EW_CHECK(index, EW_ERR_MEMORY, "no memory for an index of %llu bytes",
             (unsigned long long)bytes);
    EW_TRY(ew_blob_read(&s->blob, (int64_t)x->index_at, (int64_t)bytes, index));
    EW_CHECK(ew_hash_of(index, (size_t)bytes) == x->sum, EW_ERR_FORMAT,
             "its index is damaged (checksum)");
    s->index = index;
    int64_t first = 0;
    for (int i = 0; i < EW_SPLIT_COUNT; i++) {
        s->first[i] = first;
        d->info.count[i] = (int64_t)ew_get_le(h + 32 + 8 * i, 8);
        first += d->info.count[i];
    }
    return read_names(d, (const char *)index + x->samples * EW_PACK_ENTRY, x->names_size,
                      d->info.classes);
}

static ew_err open_parts(struct ew_dataset *d)
{
    struct state *s = d->state;
    uint8_t h[EW_PACK_HEADER];
    struct header x = {0};
    EW_TRY(ew_blob_open(d->info.path, &s->blob));
    EW_CHECK(s->blob.size >= EW_PACK_HEADER, EW_ERR_FORMAT, "%lld bytes are no packed file",
             (long long)s->blob.size);
    EW_TRY(ew_blob_read(&s->blob, 0, sizeof(h), h));
    EW_TRY(check_header(h, &s->blob, &x));
    d->info.classes = (int64_t)ew_get_le(h + 12, 4);
    d->info.c = (int64_t)ew_get_le(h + 16, 4);
    d->info.h = (int64_t)ew_get_le(h + 20, 4);
    d->info.w = (int64_t)ew_get_le(h + 24, 4);
    d->info.frames = (int64_t)ew_get_le(h + 28, 4);
    EW_CHECK(d->info.frames == 0 || (d->info.h > 0 && d->info.h % d->info.frames == 0),
             EW_ERR_FORMAT, "tells of %lld frames in %lld rows", (long long)d->info.frames,
             (long long)d->info.h);
    const bool labelled = ew_get_le(h + 32, 8) || ew_get_le(h + 40, 8);
    EW_CHECK(d->info.classes >= labelled && d->info.classes <= MAX_CLASSES &&
                 (d->info.c == 1 || d->info.c == 3) && d->info.h < 65536 && d->info.w < 65536,
             EW_ERR_FORMAT, "tells of %lld classes and %lld channels", (long long)d->info.classes,
             (long long)d->info.c);
    return read_index(d, h, &x);
}

static ew_err open_packed(struct ew_dataset *d)
{
    struct state *s = ew_arena_alloc(&d->arena, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "%s: no memory", d->info.name);
    d->state = s;
    const ew_err err = open_parts(d);
    if (err != EW_OK) {
        ew_blob_close(&s->blob);
        return ew_fail_in(err, "%s", d->info.path);
    }
    return EW_OK;
}

static void close_packed(struct ew_dataset *d)
{
    struct state *s = d->state;
    ew_blob_close(&s->blob);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static ew_err fetch(const struct ew_dataset *d, enum ew_split split, int64_t i, struct ew_sample *s)
{
    const struct state *t = d->state;
    const uint8_t *e = t->index + (t->first[split] + i) * EW_PACK_ENTRY;
    const uint64_t at = ew_get_le(e, 8), n = ew_get_le(e + 8, 4);
    const int64_t size[3] = {(int64_t)ew_get_le(e + 16, 2), (int64_t)ew_get_le(e + 18, 2), e[20]};
    EW_CHECK(n > 0 && n <= (uint64_t)t->blob.size && at <= (uint64_t)t->blob.size - n,
             EW_ERR_FORMAT, "lies outside of the file");
    EW_CHECK(e[21] == EW_PACK_ENCODED || (e[21] == EW_PACK_RAW && size[2] == d->info.c &&
                                          (uint64_t)(size[0] * size[1] * size[2]) == n),
             EW_ERR_FORMAT, "%llu bytes are no image of %lldx%lldx%lld", (unsigned long long)n,
             (long long)size[0], (long long)size[1], (long long)size[2]);
    EW_TRY(ew_blob_fetch(&t->blob, (int64_t)at, (int64_t)n, s));
    EW_CHECK(ew_hash_of(s->raw.at, (size_t)n) == ew_get_le(e + 24, 8), EW_ERR_FORMAT,
             "is damaged (checksum)");
    s->label = (int32_t)ew_get_le(e + 12, 4);
    s->encoded = e[21] == EW_PACK_ENCODED;
    if (!s->encoded)
        ew_sample_plain(s, size, false);
    return EW_OK;
}

static bool file(const struct ew_dataset *d, enum ew_split split, int64_t k, char *path)
{
    return k == 0 && d->info.count[split] > 0 && ew_data_join(path, d->info.path, "");
}

const struct ew_reader ew_data_packed = {
    .name = "packed",
    .layout = "one file made by 'data pack'",
    .knows = knows,
    .open = open_packed,
    .fetch = fetch,
    .file = file,
    .close = close_packed,
};
