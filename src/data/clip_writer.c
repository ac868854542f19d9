/* SPDX-License-Identifier: Apache-2.0 */
/* Writing video files. */
#include "data/clip_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "data/av_libraries.h"

#if EW_HAVE_FFMPEG

#define LEAST_RATE 1000000 /* bits a second */
#define TICKS      1000    /* a second */

struct ew_clip_writer {
    char path[4096];
    struct ew_file_out out; /* FFmpeg opens it by name */
    AVFormatContext *file;
    AVStream *stream;
    AVCodecContext *codec;
    struct SwsContext *scaler;
    AVPacket *packet;
    AVFrame *frame;
    int64_t last; /* time of the last frame, in ticks; -1: none */
    int64_t step; /* time between the last two frames */
    bool begun;   /* the header is written */
};

static void release(struct ew_clip_writer *c)
{
    ew_av.sws_freeContext(c->scaler);
    ew_av.avcodec_free_context(&c->codec);
    ew_av.av_packet_free(&c->packet);
    ew_av.av_frame_free(&c->frame);
    if (c->file && c->file->pb)
        ew_av.avio_closep(&c->file->pb);
    ew_av.avformat_free_context(c->file);
    ew_file_out_abort(&c->out);
    free(c);
}

static ew_err open_codec(struct ew_clip_writer *c, int64_t h, int64_t w)
{
    const AVCodec *encoder = ew_av.avcodec_find_encoder(c->file->oformat->video_codec);
    encoder = encoder ? encoder : ew_av.avcodec_find_encoder(AV_CODEC_ID_MPEG4);
    EW_CHECK(encoder, EW_ERR_UNSUPPORTED, "%s: FFmpeg has no encoder for it here", c->path);
    c->codec = ew_av.avcodec_alloc_context3(encoder);
    c->packet = ew_av.av_packet_alloc();
    c->frame = ew_av.av_frame_alloc();
    EW_CHECK(c->codec && c->packet && c->frame, EW_ERR_MEMORY, "%s: no memory", c->path);
    c->codec->width = (int)w;
    c->codec->height = (int)h;
    c->codec->time_base = (AVRational){1, TICKS};
    c->codec->pix_fmt = AV_PIX_FMT_YUV420P;
    /* 0.3 bits per pixel at 25 frames a second, with a minimum for small frames */
    c->codec->bit_rate = ew_max_i64(8 * h * w, LEAST_RATE);
    c->codec->thread_count = 1;
    if (c->file->oformat->flags & AVFMT_GLOBALHEADER)
        c->codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    EW_CHECK(ew_av.avcodec_open2(c->codec, encoder, NULL) == 0, EW_ERR_UNSUPPORTED,
             "%s: frames of %lld x %lld cannot be encoded", c->path, (long long)w, (long long)h);
    c->frame->format = AV_PIX_FMT_YUV420P;
    c->frame->width = (int)w;
    c->frame->height = (int)h;
    EW_CHECK(ew_av.av_frame_get_buffer(c->frame, 0) == 0, EW_ERR_MEMORY, "%s: no memory", c->path);
    return EW_OK;
}

/* The error of a call that returned `code`: FFmpeg's own codes are below those of errno. */
static ew_err cannot_write(const struct ew_clip_writer *c, int code)
{
    const char *reason = code > -4096 ? strerror(-code) : "FFmpeg cannot write it";
    return ew_fail(EW_ERR_IO, "%s: %s", c->path, reason);
}

static ew_err open_file(struct ew_clip_writer *c, int64_t h, int64_t w)
{
    EW_CHECK(ew_av.avformat_alloc_output_context2(&c->file, NULL, NULL, c->path) >= 0 && c->file,
             EW_ERR_USAGE, "%s: FFmpeg knows no kind of video file of this name; .mp4 is one",
             c->path);
    c->stream = ew_av.avformat_new_stream(c->file, NULL);
    EW_CHECK(c->stream, EW_ERR_MEMORY, "%s: no memory", c->path);
    EW_TRY(open_codec(c, h, w));
    EW_TRY(ew_file_out_open(c->path, &c->out));
    char url[2 * sizeof(c->path)]; /* a path may look like a URL ("a:b.mp4") */
    snprintf(url, sizeof(url), "file:%s", c->out.temp ? c->out.temp : c->path);
    c->stream->time_base = c->codec->time_base;
    int code = ew_av.avcodec_parameters_from_context(c->stream->codecpar, c->codec);
    if (code >= 0)
        code = ew_av.avio_open(&c->file->pb, url, AVIO_FLAG_WRITE);
    if (code >= 0)
        code = ew_av.avformat_write_header(c->file, NULL);
    if (code < 0)
        return cannot_write(c, code);
    c->begun = true;
    return EW_OK;
}

ew_err ew_clip_writer_open(const char *path, int64_t h, int64_t w, struct ew_clip_writer **out)
{
    EW_TRY(ew_fail_in(ew_av_libraries(), "%s", path));
    struct ew_clip_writer *c = calloc(1, sizeof(*c));
    EW_CHECK(c, EW_ERR_MEMORY, "%s: no memory", path);
    snprintf(c->path, sizeof(c->path), "%s", path);
    c->last = -1;
    const ew_err e = open_file(c, h & ~INT64_C(1), w & ~INT64_C(1));
    if (e != EW_OK)
        release(c);
    else
        *out = c;
    return e;
}

/* Writes the encoder's finished packets. */
static ew_err drain(struct ew_clip_writer *c)
{
    while (ew_av.avcodec_receive_packet(c->codec, c->packet) == 0) {
        if (c->packet->duration <= 0) /* players skip a last frame without duration */
            c->packet->duration = c->step;
        ew_av.av_packet_rescale_ts(c->packet, c->codec->time_base, c->stream->time_base);
        const int code = ew_av.av_interleaved_write_frame(c->file, c->packet);
        if (code < 0)
            return cannot_write(c, code);
    }
    return EW_OK;
}

ew_err ew_clip_writer_put(struct ew_clip_writer *c, const uint8_t *rgb, const int64_t size[2],
                          int64_t time_us)
{
    const int h = (int)size[0], w = (int)size[1], pitch[] = {3 * w};
    const int64_t at = time_us / (1000000 / TICKS);
    c->scaler = ew_av.sws_getCachedContext(c->scaler, w, h, AV_PIX_FMT_RGB24, c->frame->width,
                                           c->frame->height, AV_PIX_FMT_YUV420P, SWS_BILINEAR, NULL,
                                           NULL, NULL);
    EW_CHECK(c->scaler && ew_av.av_frame_make_writable(c->frame) >= 0, EW_ERR_MEMORY,
             "%s: a frame of %d x %d pixels", c->path, w, h);
    ew_av.sws_scale(c->scaler, (const uint8_t *const[]){rgb}, pitch, 0, h, c->frame->data,
                    c->frame->linesize);
    const int64_t now = at > c->last ? at : c->last + 1;
    c->step = c->last >= 0 ? now - c->last : TICKS / 25;
    c->frame->pts = c->last = now;
    EW_CHECK(ew_av.avcodec_send_frame(c->codec, c->frame) == 0, EW_ERR_IO,
             "%s: a frame cannot be encoded", c->path);
    return drain(c);
}

ew_err ew_clip_writer_close(struct ew_clip_writer *c)
{
    if (!c)
        return EW_OK;
    ew_err e = ew_av.avcodec_send_frame(c->codec, NULL) == 0 ? drain(c) : EW_OK;
    const int tail = e == EW_OK ? ew_av.av_write_trailer(c->file) : 0,
              end = ew_av.avio_closep(&c->file->pb);
    if (e == EW_OK)
        e = tail < 0 || end < 0 ? cannot_write(c, tail < 0 ? tail : end)
                                : ew_file_out_commit(&c->out);
    release(c);
    return e;
}
#else
ew_err ew_clip_writer_open(const char *path, int64_t h, int64_t w, struct ew_clip_writer **out)
{
    return ew_fail(EW_ERR_UNSUPPORTED, "%s: this build writes no video (EW_FFMPEG)", path);
}

ew_err ew_clip_writer_put(struct ew_clip_writer *c, const uint8_t *rgb, const int64_t size[2],
                          int64_t time_us)
{
    return EW_ERR_UNSUPPORTED;
}

ew_err ew_clip_writer_close(struct ew_clip_writer *c)
{
    return EW_OK;
}
#endif
