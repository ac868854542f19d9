/* SPDX-License-Identifier: Apache-2.0 */
/* Exporting data sets: folders of PNG or video files, IDX files, packed files. */
#include "data/write_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/owned.h"
#include "data/clip_writer.h"
#include "data/image_file.h"
#include "data/packed.h"
#include "data/staging.h"

/* The sample as a contiguous array. */
static ew_err plain(const struct ew_sample *s, struct ew_bytes *out)
{
    EW_TRY(ew_bytes_need(out, (size_t)(s->h * s->w * s->c)));
    uint8_t *to = out->at;
    for (int64_t y = 0; y < s->h; y++)
        for (int64_t x = 0; x < s->w; x++)
            for (int64_t c = 0; c < s->c; c++)
                *to++ = s->pixels[y * s->sy + x * s->sx + c * s->sc];
    return EW_OK;
}

/* ---- Folder ---------------------------------------------------------------------------------- */

static ew_err make_dir(char path[EW_DATA_PATH], const char *dir, const char *name)
{
    EW_CHECK(ew_data_join(path, dir, name), EW_ERR_LIMIT, "%s: too long a path", dir);
    EW_CHECK(mkdir(path, 0777) == 0, EW_ERR_IO, "%s: %s", path, strerror(errno));
    return EW_OK;
}

static ew_err write_png(const char *path, const struct ew_sample *s, const uint8_t *pixels)
{
    /* not synced one by one: sync_all syncs the whole folder before the rename */
    FILE *f = fopen(path, "wbxe");
    EW_CHECK(f, EW_ERR_IO, "%s: %s", path, strerror(errno));
    ew_err err = ew_image_put_png(f, path, pixels, (const int64_t[3]){s->h, s->w, s->c});
    if (fclose(f) != 0 && err == EW_OK)
        err = ew_fail(EW_ERR_IO, "%s: %s", path, strerror(errno));
    return err;
}

#define FRAME_US 40000 /* 25 frames a second */

/* Writes a clip, whose frames are stacked along the height. */
static ew_err write_clip(const char *path, const struct ew_sample *s, int64_t frames,
                         const uint8_t *pixels)
{
    const int64_t size[2] = {s->h / frames, s->w};
    EW_CHECK(s->c == 3, EW_ERR_SHAPE, "%s: video files have three channels, not %lld", path,
             (long long)s->c);
    EW_CHECK(size[0] % 2 == 0 && size[1] % 2 == 0, EW_ERR_SHAPE,
             "%s: sides of video files are even, not %lldx%lld", path, (long long)size[0],
             (long long)size[1]);
    struct ew_clip_writer *c = NULL;
    EW_TRY(ew_clip_writer_open(path, size[0], size[1], &c));
    ew_err err = EW_OK;
    for (int64_t i = 0; i < frames && err == EW_OK; i++)
        err = ew_clip_writer_put(c, pixels + i * size[0] * size[1] * 3, size, i * FRAME_US);
    const ew_err closed = ew_clip_writer_close(c);
    return err == EW_OK ? closed : err;
}

static ew_err write_sample(const struct ew_dataset *d, const char *dir, int64_t i,
                           const struct ew_sample *s, struct ew_bytes *pixels)
{
    const int64_t frames = ew_dataset_info(d)->frames;
    char path[EW_DATA_PATH], name[320];
    snprintf(name, sizeof(name), "%.200s/%06lld.%s", ew_dataset_class(d, s->label), (long long)i,
             frames ? "mp4" : "png");
    EW_CHECK(ew_data_join(path, dir, name), EW_ERR_LIMIT, "%s: too long a path", dir);
    EW_TRY(plain(s, pixels));
    return frames ? write_clip(path, s, frames, pixels->at) : write_png(path, s, pixels->at);
}

static ew_err sync_all(const char *dir)
{
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool ok = fd >= 0 && syncfs(fd) == 0;
    const int reason = errno;
    if (fd >= 0)
        close(fd);
    EW_CHECK(ok, EW_ERR_IO, "%s: %s", dir, strerror(reason));
    return EW_OK;
}

/* An export in progress. */
struct writing {
    const struct ew_dataset *d;
    struct ew_progress *progress;
    int64_t done;
    struct ew_sample s;
    struct ew_bytes pixels;
};

static ew_err write_folder(struct writing *w, const char *to)
{
    const struct ew_dataset *d = w->d;
    const struct ew_dataset_info *info = ew_dataset_info(d);
    for (int split = EW_SPLIT_TRAIN; split <= EW_SPLIT_TEST; split++) {
        char dir[EW_DATA_PATH], below[EW_DATA_PATH];
        EW_TRY(make_dir(dir, to, ew_split_name((enum ew_split)split)));
        for (int64_t k = 0; k < info->classes; k++)
            EW_TRY(make_dir(below, dir, ew_dataset_class(d, k)));
        for (int64_t i = 0; i < info->count[split]; i++) {
            EW_TRY(ew_dataset_read(d, (enum ew_split)split, i, &w->s));
            EW_TRY(write_sample(d, dir, i, &w->s, &w->pixels));
            ew_progress_update(w->progress, ++w->done);
        }
    }
    return sync_all(to);
}

/* ---- IDX ------------------------------------------------------------------------------------- */

static void put_dims(FILE *f, int rank, const int64_t *dim)
{
    const uint8_t magic[4] = {0, 0, 8, (uint8_t)rank};
    fwrite(magic, 1, 4, f);
    for (int i = 0; i < rank; i++)
        for (int shift = 24; shift >= 0; shift -= 8)
            fputc((int)(dim[i] >> shift & 255), f);
}

static ew_err open_idx(const char *to, const char *prefix, const char *what, struct ew_file_out *o)
{
    char path[EW_DATA_PATH], name[64];
    snprintf(name, sizeof(name), "%s-%s-ubyte", prefix, what);
    EW_CHECK(ew_data_join(path, to, name), EW_ERR_LIMIT, "%s: too long a path", to);
    return ew_file_out_open(path, o);
}

static ew_err put_samples(struct writing *w, enum ew_split split, FILE *f, uint8_t *labels)
{
    const struct ew_dataset_info *info = ew_dataset_info(w->d);
    const struct ew_sample *s = &w->s;
    for (int64_t i = 0; i < info->count[split]; i++) {
        EW_TRY(ew_dataset_read(w->d, split, i, &w->s));
        EW_CHECK(s->h == info->h && s->w == info->w && s->label <= 255, EW_ERR_SHAPE,
                 "%s sample %lld does not fit into an IDX file", ew_split_name(split),
                 (long long)i);
        EW_TRY(plain(s, &w->pixels));
        labels[i] = (uint8_t)s->label;
        fwrite(w->pixels.at, 1, w->pixels.size, f);
        ew_progress_update(w->progress, ++w->done);
    }
    return EW_OK;
}

static ew_err write_part(struct writing *w, enum ew_split split, const char *to)
{
    const struct ew_dataset_info *info = ew_dataset_info(w->d);
    const char *prefix = split == EW_SPLIT_TRAIN ? "train" : "t10k";
    const int64_t n = info->count[split], dim[4] = {n, info->h, info->w, info->c};
    EW_CLEANUP(ew_free_ptr) uint8_t *labels = malloc((size_t)n + 1);
    EW_CHECK(labels, EW_ERR_MEMORY, "no memory for %lld labels", (long long)n);
    struct ew_file_out o;
    EW_TRY(open_idx(to, prefix, "images-idx3", &o));
    put_dims(o.f, info->c == 1 ? 3 : 4, dim);
    const ew_err err = put_samples(w, split, o.f, labels);
    if (err != EW_OK) {
        ew_file_out_abort(&o);
        return err;
    }
    EW_TRY(ew_file_out_commit(&o));
    EW_TRY(open_idx(to, prefix, "labels-idx1", &o));
    put_dims(o.f, 1, dim);
    fwrite(labels, 1, (size_t)n, o.f);
    return ew_file_out_commit(&o);
}

static ew_err write_names(const struct ew_dataset *d, const char *to)
{
    char path[EW_DATA_PATH];
    struct ew_file_out o;
    EW_CHECK(ew_data_join(path, to, "classes.txt"), EW_ERR_LIMIT, "%s: too long a path", to);
    EW_TRY(ew_file_out_open(path, &o));
    for (int64_t k = 0; k < ew_dataset_info(d)->classes; k++)
        fprintf(o.f, "%s\n", ew_dataset_class(d, k));
    return ew_file_out_commit(&o);
}

static ew_err write_idx(struct writing *w, const char *to)
{
    const struct ew_dataset_info *info = ew_dataset_info(w->d);
    EW_CHECK(!info->frames, EW_ERR_SHAPE, "%s: IDX files hold images, not clips", info->name);
    EW_CHECK(info->h > 0 && info->classes <= 256, EW_ERR_SHAPE,
             "%s: images of several sizes, or over 256 classes, do not fit into IDX files",
             info->name);
    for (int split = EW_SPLIT_TRAIN; split <= EW_SPLIT_TEST; split++)
        if (info->count[split])
            EW_TRY(write_part(w, (enum ew_split)split, to));
    return write_names(w->d, to);
}

/* ---- Folders --------------------------------------------------------------------------------- */

static ew_err write_dir(struct writing *w, enum ew_set_format format, const char *to)
{
    char stage[EW_DATA_PATH];
    EW_TRY(ew_staging_new(to, "stage", stage));
    ew_err err = format == EW_SET_IDX ? write_idx(w, stage) : write_folder(w, stage);
    if (err == EW_OK)
        err = ew_owned_publish(stage, to);
    ew_staging_remove(stage);
    free(w->pixels.at);
    ew_sample_fini(&w->s);
    return err;
}

ew_err ew_dataset_write(const struct ew_dataset *d, enum ew_set_format format, const char *to,
                        struct ew_progress *progress)
{
    EW_CHECK(access(to, F_OK) != 0, EW_ERR_IO, "%s: exists already", to);
    if (format != EW_SET_PACKED)
        return write_dir(&(struct writing){.d = d, .progress = progress}, format, to);
    struct ew_pack_result r;
    return ew_dataset_pack(d, to, &(struct ew_pack_opts){.progress = progress}, &r);
}
