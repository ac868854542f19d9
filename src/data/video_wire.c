/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the program and the video decoder process. */
#include "data/video_wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/spawn.h"

void ew_video_frame_fini(struct ew_video_frame *f)
{
    free(f->pixels.at);
    free(f->full.at);
    *f = (struct ew_video_frame){0};
}

ew_err ew_video_opts_check(const struct ew_video_opts *o)
{
    EW_CHECK(o->h > 0 && o->w > 0 && o->h <= EW_VIDEO_SIDE && o->w <= EW_VIDEO_SIDE, EW_ERR_LIMIT,
             "frames of %lld x %lld pixels", (long long)o->w, (long long)o->h);
    EW_CHECK(o->place >= -0.5 && o->place <= 0.5, EW_ERR_ARG, "frames from %g of the file",
             o->place);
    EW_CHECK(o->frames >= 0 && o->stride >= 1 && o->first >= -1, EW_ERR_ARG,
             "%lld frames, %lld apart, from %lld", (long long)o->frames, (long long)o->stride,
             (long long)o->first);
    return EW_OK;
}

/* ---- Receive ---- */

static bool frame_fits(const struct ew_video_wire_head *m, const struct ew_video_opts *o)
{
    const bool sides =
        m->full_h > 0 && m->full_w > 0 && m->full_h <= EW_VIDEO_SIDE && m->full_w <= EW_VIDEO_SIDE;
    return m->h == o->h && m->w == o->w && m->text_bytes == 0 && sides && m->decode_ns >= 0 &&
           (int64_t)m->full_bytes == (o->full ? 3 * (int64_t)m->full_h * m->full_w : 0);
}

static bool head_fits(const struct ew_video_wire_head *m, const struct ew_video_opts *o)
{
    if (m->magic != EW_VIDEO_WIRE_MAGIC)
        return false;
    switch (m->kind) {
    case EW_VIDEO_WIRE_FRAME:
        return frame_fits(m, o);
    case EW_VIDEO_WIRE_END:
        return m->full_bytes == 0 && m->text_bytes == 0;
    case EW_VIDEO_WIRE_ERROR:
        return m->full_bytes == 0 && m->text_bytes < EW_VIDEO_WIRE_TEXT;
    default:
        return false;
    }
}

ew_err ew_video_wire_take(int fd, const struct ew_video_opts *o, int timeout_ms,
                          struct ew_video_frame *out, enum ew_video_wire_kind *kind,
                          char text[EW_VIDEO_WIRE_TEXT])
{
    struct ew_video_wire_head m;
    EW_TRY(ew_server_read(fd, &m, sizeof(m), timeout_ms));
    EW_CHECK(head_fits(&m, o), EW_ERR_FORMAT, "the decoder's answer makes no sense");
    *kind = (enum ew_video_wire_kind)m.kind;
    text[m.text_bytes] = 0;
    if (*kind == EW_VIDEO_WIRE_ERROR) {
        EW_TRY(ew_server_read(fd, text, m.text_bytes, timeout_ms));
        for (uint32_t i = 0; i < m.text_bytes; i++)
            if ((unsigned char)text[i] < ' ')
                text[i] = ' ';
    }
    if (*kind != EW_VIDEO_WIRE_FRAME)
        return EW_OK;
    out->h = m.h;
    out->w = m.w;
    out->full_h = m.full_h;
    out->full_w = m.full_w;
    out->time_us = m.time_us;
    out->decode_ns = m.decode_ns;
    EW_TRY(ew_bytes_need(&out->pixels, (size_t)(3 * out->h * out->w)));
    EW_TRY(ew_server_read(fd, out->pixels.at, out->pixels.size, timeout_ms));
    if (!m.full_bytes)
        return EW_OK;
    EW_TRY(ew_bytes_need(&out->full, m.full_bytes));
    return ew_server_read(fd, out->full.at, m.full_bytes, timeout_ms);
}

/* ---- Send ---- */

ew_err ew_video_wire_give(int fd, enum ew_video_wire_kind kind, const struct ew_video_frame *f,
                          const char *text)
{
    struct ew_video_wire_head m = {.magic = EW_VIDEO_WIRE_MAGIC, .kind = (uint32_t)kind};
    if (kind == EW_VIDEO_WIRE_FRAME) {
        m.h = (int32_t)f->h;
        m.w = (int32_t)f->w;
        m.full_h = (int32_t)f->full_h;
        m.full_w = (int32_t)f->full_w;
        m.time_us = f->time_us;
        m.decode_ns = f->decode_ns;
        m.full_bytes = (uint32_t)f->full.size;
    }
    if (kind == EW_VIDEO_WIRE_ERROR)
        m.text_bytes = (uint32_t)strnlen(text, EW_VIDEO_WIRE_TEXT - 1);
    EW_TRY(ew_server_write(fd, &m, sizeof(m)));
    if (kind == EW_VIDEO_WIRE_FRAME) {
        EW_TRY(ew_server_write(fd, f->pixels.at, (size_t)(3 * f->h * f->w)));
        return ew_server_write(fd, f->full.at, f->full.size);
    }
    return ew_server_write(fd, text, m.text_bytes);
}
