/* SPDX-License-Identifier: Apache-2.0 */
/* Writing packed files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/progress.h"
#include "data/image_resize.h"
#include "data/packed.h"

struct packer {
    const struct ew_dataset *d;
    const struct ew_pack_opts *o;
    FILE *f;
    uint64_t at; /* bytes written so far */
    uint8_t *index;
    int64_t n; /* samples in the index */
    int64_t count[EW_SPLIT_COUNT];
    struct ew_sample sample;
    struct ew_resizer resizer;
    struct ew_bytes pixels; /* plain [h, w, c] */
    struct ew_pack_result result;
};

static ew_err put(struct packer *p, const void *bytes, size_t n)
{
    EW_CHECK(fwrite(bytes, 1, n, p->f) == n, EW_ERR_IO, "%s", strerror(errno));
    p->at += n;
    return EW_OK;
}

/* ---- Samples --------------------------------------------------------------------------------- */

/* Stores the sample's pixels as a contiguous array in p->pixels, resized if wanted. */
static ew_err make_plain(struct packer *p, int64_t size[3])
{
    const struct ew_sample *s = &p->sample;
    const bool resize = p->o->h > 0 && (s->h != p->o->h || s->w != p->o->w);
    size[0] = resize ? p->o->h : s->h;
    size[1] = resize ? p->o->w : s->w;
    size[2] = s->c;
    EW_CHECK(size[0] < 65536 && size[1] < 65536, EW_ERR_LIMIT, "%lldx%lld pixels are too many",
             (long long)size[0], (long long)size[1]);
    EW_TRY(ew_bytes_need(&p->pixels, (size_t)(size[0] * size[1] * size[2])));
    if (resize)
        return ew_resizer_run_sample(&p->resizer, s, size[0], size[1], p->pixels.at);
    uint8_t *to = p->pixels.at;
    for (int64_t y = 0; y < s->h; y++)
        for (int64_t x = 0; x < s->w; x++)
            for (int64_t c = 0; c < s->c; c++)
                *to++ = s->pixels[y * s->sy + x * s->sx + c * s->sc];
    return EW_OK;
}

static ew_err add_sample(struct packer *p, enum ew_split split, int64_t i)
{
    struct ew_sample *s = &p->sample;
    EW_TRY(ew_dataset_read(p->d, split, i, s)); /* decoded too, to detect bad samples */
    const bool keep = s->encoded && !p->o->raw && p->o->h == 0;
    int64_t size[3] = {0, 0, s->c};
    if (!keep)
        EW_TRY(make_plain(p, size));
    const struct ew_bytes *b = keep ? &s->raw : &p->pixels;
    uint8_t *e = p->index + p->n * EW_PACK_ENTRY;
    memset(e, 0, EW_PACK_ENTRY);
    ew_put_le(e, p->at, 8);
    ew_put_le(e + 8, b->size, 4);
    ew_put_le(e + 12, (uint64_t)s->label, 4);
    ew_put_le(e + 16, (uint64_t)size[0], 2);
    ew_put_le(e + 18, (uint64_t)size[1], 2);
    e[20] = (uint8_t)size[2];
    e[21] = keep ? EW_PACK_ENCODED : EW_PACK_RAW;
    ew_put_le(e + 24, ew_hash_of(b->at, b->size), 8);
    EW_TRY(put(p, b->at, b->size));
    p->n++;
    p->count[split]++;
    return EW_OK;
}

static ew_err add_split(struct packer *p, enum ew_split split, int64_t *done)
{
    const int64_t n = ew_dataset_info(p->d)->count[split];
    for (int64_t i = 0; i < n; i++) {
        const ew_err err = add_sample(p, split, i);
        const bool skip = ew_sample_is_bad(err) && !ferror(p->f) && p->o->skip_bad;
        if (err != EW_OK && !skip)
            return err;
        if (skip) {
            EW_WARN("left out: %s", ew_error_message());
            p->result.bad++;
        }
        if (p->o->progress)
            ew_progress_update(p->o->progress, ++*done);
    }
    return EW_OK;
}

/* ---- The file -------------------------------------------------------------------------------- */

static ew_err put_name(struct packer *p, struct ew_hash *sum, const char *name)
{
    ew_hash_add(sum, name, strlen(name) + 1);
    return put(p, name, strlen(name) + 1);
}

static ew_err put_index(struct packer *p, uint8_t header[EW_PACK_HEADER])
{
    const struct ew_dataset_info *d = ew_dataset_info(p->d);
    const size_t bytes = (size_t)p->n * EW_PACK_ENTRY;
    struct ew_hash sum = {0};
    ew_put_le(header + 56, p->at, 8);
    ew_hash_add(&sum, p->index, bytes);
    EW_TRY(put(p, p->index, bytes));
    const uint64_t names = p->at;
    EW_TRY(put_name(p, &sum, d->name));
    for (int64_t k = 0; k < d->classes; k++)
        EW_TRY(put_name(p, &sum, ew_dataset_class(p->d, k)));
    ew_put_le(header + 64, names, 8);
    ew_put_le(header + 72, p->at - names, 8);
    ew_put_le(header + 80, p->at, 8);
    ew_put_le(header + 88, ew_hash_sum(&sum), 8);
    return EW_OK;
}

static void fill_header(const struct packer *p, uint8_t header[EW_PACK_HEADER])
{
    const struct ew_dataset_info *d = ew_dataset_info(p->d);
    memcpy(header, EW_PACK_MAGIC, 8);
    ew_put_le(header + 8, d->frames ? EW_PACK_CLIPS : EW_PACK_VERSION, 4);
    ew_put_le(header + 12, (uint64_t)d->classes, 4);
    ew_put_le(header + 16, (uint64_t)d->c, 4);
    ew_put_le(header + 20, (uint64_t)(p->o->h ? p->o->h : d->h), 4);
    ew_put_le(header + 24, (uint64_t)(p->o->h ? p->o->w : d->w), 4);
    ew_put_le(header + 28, (uint64_t)d->frames, 4);
    for (int i = 0; i < EW_SPLIT_COUNT; i++)
        ew_put_le(header + 32 + 8 * i, (uint64_t)p->count[i], 8);
    ew_put_le(header + 120, ew_hash_of(header, 120), 8);
}

static ew_err put_all(struct packer *p)
{
    uint8_t header[EW_PACK_HEADER] = {0};
    int64_t done = 0;
    EW_TRY(put(p, header, sizeof(header))); /* placeholder; rewritten at the end */
    for (int i = 0; i < EW_SPLIT_COUNT; i++)
        EW_TRY(add_split(p, (enum ew_split)i, &done));
    EW_TRY(put_index(p, header));
    fill_header(p, header);
    EW_CHECK(fseek(p->f, 0, SEEK_SET) == 0 &&
                 fwrite(header, 1, sizeof(header), p->f) == sizeof(header),
             EW_ERR_IO, "%s", strerror(errno));
    return EW_OK;
}

ew_err ew_dataset_pack(const struct ew_dataset *d, const char *path, const struct ew_pack_opts *o,
                       struct ew_pack_result *out)
{
    EW_CHECK(!o->h || !ew_dataset_info(d)->frames, EW_ERR_USAGE,
             "%s: clips are packed in the size that their data set gives them",
             ew_dataset_info(d)->name);
    struct packer p = {.d = d, .o = o};
    int64_t all = 0;
    for (int i = 0; i < EW_SPLIT_COUNT; i++)
        all += ew_dataset_info(d)->count[i];
    struct ew_file_out file;
    EW_TRY(ew_file_out_open(path, &file));
    p.f = file.f;
    p.index = calloc((size_t)all + 1, EW_PACK_ENTRY);
    ew_err err =
        p.index ? put_all(&p)
                : ew_fail(EW_ERR_MEMORY, "no memory for an index of %lld samples", (long long)all);
    if (err == EW_OK)
        err = ew_file_out_commit(&file);
    else
        ew_file_out_abort(&file);
    p.result.samples = p.n;
    p.result.bytes = (int64_t)p.at;
    *out = p.result;
    free(p.index);
    free(p.pixels.at);
    ew_resizer_fini(&p.resizer);
    ew_sample_fini(&p.sample);
    return ew_fail_in(err, "%s", path);
}
