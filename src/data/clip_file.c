/* SPDX-License-Identifier: Apache-2.0 */
/* Clips from video files. */
#include "data/clip_file.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "data/video_decoder.h"

bool ew_clip_is(const char *name)
{
    static const char *const ends[] = {".mp4", ".avi", ".mkv", ".mov", ".webm",
                                       ".mpg", ".m4v", ".ts",  NULL};
    return ew_has_extension(name, ends);
}

/* Reads frames from `first` on, as many as there are. */
static ew_err read_from(const char *path, const struct ew_clip_opts *o, int64_t first, uint8_t *to,
                        int64_t *taken)
{
    const struct ew_video_opts want = {.frames = o->frames,
                                       .stride = o->stride,
                                       .first = first,
                                       .place = o->place,
                                       .h = o->h,
                                       .w = o->w};
    struct ew_video *f;
    struct ew_video_frame frame = {0};
    bool end = false;
    *taken = 0;
    EW_TRY(ew_video_open(path, &want, &f));
    ew_err e = EW_OK;
    while (e == EW_OK && !end) {
        e = ew_video_next(f, &frame, &end);
        if (e == EW_OK && !end && *taken < o->frames)
            memcpy(to + (*taken)++ * o->h * o->w * 3, frame.pixels.at, (size_t)(o->h * o->w * 3));
    }
    ew_video_close(f);
    ew_video_frame_fini(&frame);
    return e;
}

ew_err ew_clip_read(const char *path, const struct ew_clip_opts *o, uint8_t *to)
{
    int64_t taken;
    EW_TRY(read_from(path, o, -1, to, &taken));
    if (taken == 0) /* shorter than stated: restart from the beginning */
        EW_TRY(read_from(path, o, 0, to, &taken));
    EW_CHECK(taken > 0, EW_ERR_FORMAT, "%s: has no frame that can be decoded", path);
    const size_t frame = (size_t)(o->h * o->w * 3);
    for (int64_t i = taken; i < o->frames; i++)
        memcpy(to + (size_t)i * frame, to + (size_t)(i - 1) * frame, frame);
    return EW_OK;
}
