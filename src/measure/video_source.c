/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the frames of a video stream. */
#include "measure/video_source.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define REOPEN_TRIES 10
#define RAW_FPS      25 /* raw frames have no timestamps; FFmpeg's default rate, too */

ew_err ew_video_source_open(const char *name, const struct ew_video_opts *o,
                            struct ew_video_source *out)
{
    *out = (struct ew_video_source){.name = name, .o = *o};
    if (strcmp(name, "-") == 0)
        return EW_OK;
    out->live = ew_video_is_live(name);
    return ew_video_open(name, o, &out->frames);
}

void ew_video_source_close(struct ew_video_source *s)
{
    ew_video_close(s->frames);
    s->frames = NULL;
}

/* Reads one raw frame, or end of file. */
static ew_err read_raw(struct ew_video_source *s, struct ew_video_frame *out, bool *end)
{
    const size_t size = (size_t)(3 * s->o.h * s->o.w);
    const int64_t start = ew_clock_ns();
    size_t have = 0;
    EW_TRY(ew_bytes_need(&out->pixels, size));
    while (have < size) {
        const ssize_t got = read(STDIN_FILENO, out->pixels.at + have, size - have);
        if (got < 0 && errno == EINTR)
            continue;
        EW_CHECK(got >= 0, EW_ERR_IO, "standard input: %s", strerror(errno));
        if (got == 0)
            break;
        have += (size_t)got;
    }
    *end = have < size;
    if (have > 0 && *end)
        EW_WARN("standard input: the last frame has %zu of %zu bytes and is left out", have, size);
    out->h = out->full_h = s->o.h;
    out->w = out->full_w = s->o.w;
    out->time_us = s->n * 1000000 / RAW_FPS;
    out->decode_ns = ew_clock_ns() - start;
    if (!*end && s->o.full) {
        EW_TRY(ew_bytes_need(&out->full, size));
        memcpy(out->full.at, out->pixels.at, size);
    }
    return EW_OK;
}

/* Reopens the source after a pause; *end: it was gone for too long, or *stop is set. */
static void reopen(struct ew_video_source *s, const volatile int *stop, bool *end)
{
    const struct timespec pause = {.tv_sec = 1};
    ew_video_source_close(s);
    nanosleep(&pause, NULL);
    const bool late = s->until_ns && ew_clock_ns() >= s->until_ns;
    *end = *stop || late || ++s->failures > REOPEN_TRIES ||
           ew_video_open(s->name, &s->o, &s->frames) != EW_OK;
    if (*end)
        EW_WARN("%s: is gone", s->name);
}

static void note_size(struct ew_video_source *s, const struct ew_video_frame *f)
{
    if (s->size[0] && (s->size[0] != f->full_h || s->size[1] != f->full_w)) {
        s->size_changes++;
        EW_WARN("%s: frames are %lld x %lld pixels from frame %lld on", s->name,
                (long long)f->full_w, (long long)f->full_h, (long long)s->n + 1);
    }
    s->size[0] = f->full_h;
    s->size[1] = f->full_w;
}

ew_err ew_video_source_next(struct ew_video_source *s, const volatile int *stop,
                            struct ew_video_frame *out, bool *end)
{
    const bool raw = strcmp(s->name, "-") == 0;
    for (;;) {
        const ew_err e = raw ? read_raw(s, out, end) : ew_video_next(s->frames, out, end);
        if (e == EW_OK && !*end) {
            note_size(s, out);
            s->reopened += s->failures > 0;
            s->failures = 0;
            s->n++;
            s->decode_ns += out->decode_ns;
            return EW_OK;
        }
        if (!s->live || *stop || s->n == 0)
            return e;
        if (s->failures == 0)
            EW_WARN("%s; waiting for it to come back",
                    e == EW_OK ? "the stream has ended" : ew_error_message());
        reopen(s, stop, end);
        if (*end)
            return EW_OK;
    }
}
