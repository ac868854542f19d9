/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding by libavformat, libavcodec and libswscale. */
#include "data/av_source.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/library.h"
#include "base/mem.h"
#include "data/av_libraries.h"

#if EW_HAVE_FFMPEG

#define MAX_FRAMES 1000000 /* decoded per file, at most */
#define IO_BYTES   65536

struct ew_av_source {
    const char *name;
    int fd;
    struct ew_video_opts o;
    AVFormatContext *file;
    AVIOContext *io;
    AVCodecContext *codec;
    struct SwsContext *scaler, *copier;
    AVPacket *packet;
    AVFrame *frame;
    int stream, format;
    int64_t from[2];   /* frame size of the scalers */
    int64_t scaled[2]; /* output size of the first scaler */
    uint8_t *picture;  /* [scaled, 3] */
    int64_t first, decoded, taken;
    bool drained; /* end of stream was signalled to the decoder */
};

void ew_av_close(struct ew_av_source *s)
{
    if (!s)
        return;
    if (s->scaler)
        ew_av.sws_freeContext(s->scaler);
    if (s->copier)
        ew_av.sws_freeContext(s->copier);
    if (s->codec)
        ew_av.avcodec_free_context(&s->codec);
    if (s->file)
        ew_av.avformat_close_input(&s->file);
    if (s->io) {
        ew_av.av_freep(&s->io->buffer);
        ew_av.avio_context_free(&s->io);
    }
    if (s->packet)
        ew_av.av_packet_free(&s->packet);
    if (s->frame)
        ew_av.av_frame_free(&s->frame);
    free(s->picture);
    free(s);
}

static int read_file(void *opaque, uint8_t *to, int n)
{
    const ssize_t got = read(((struct ew_av_source *)opaque)->fd, to, (size_t)n);
    return got > 0 ? (int)got : got == 0 ? AVERROR_EOF : AVERROR(EIO);
}

static int64_t seek_file(void *opaque, int64_t offset, int whence)
{
    const int fd = ((struct ew_av_source *)opaque)->fd;
    if (whence & AVSEEK_SIZE) {
        const off_t at = lseek(fd, 0, SEEK_CUR), size = lseek(fd, 0, SEEK_END);
        return lseek(fd, at, SEEK_SET) == at ? size : -1;
    }
    return lseek(fd, (off_t)offset, whence & ~AVSEEK_FORCE);
}

static ew_err open_file(struct ew_av_source *s)
{
    unsigned char *buffer = ew_av.av_malloc(IO_BYTES);
    s->io = buffer ? ew_av.avio_alloc_context(buffer, IO_BYTES, 0, s, read_file, NULL, seek_file)
                   : NULL;
    if (buffer && !s->io)
        ew_av.av_freep(&buffer);
    s->file = ew_av.avformat_alloc_context();
    EW_CHECK(s->io && s->file, EW_ERR_MEMORY, "%s: no memory", s->name);
    s->file->pb = s->io;
    EW_CHECK(ew_av.avformat_open_input(&s->file, s->name, NULL, NULL) == 0, EW_ERR_FORMAT,
             "%s: no video file that FFmpeg knows, or a damaged one", s->name);
    return EW_OK;
}

/* The input format of cameras, from libavdevice if installed. */
static const AVInputFormat *camera_format(void)
{
    int (*register_all)(void) = NULL;
    const struct ew_symbol symbols[] = {{"avdevice_register_all", &register_all}, {NULL, NULL}};
    char file[64];
    void *kept;
    /* versioned like libavformat */
    snprintf(file, sizeof(file), "libavdevice%s", strchr(EW_AVFORMAT_FILE, '.'));
    if (ew_library_open(file, symbols, &kept) == EW_OK)
        register_all();
    return ew_av.av_find_input_format("v4l2");
}

static ew_err open_live(struct ew_av_source *s)
{
    const bool camera = strncmp(s->name, "/dev/", 5) == 0;
    const AVInputFormat *format = camera ? camera_format() : NULL;
    AVDictionary *options = NULL;
    EW_CHECK(!camera || format, EW_ERR_UNSUPPORTED,
             "%s: cameras need FFmpeg's libavdevice, which is not installed", s->name);
    if (!camera)
        ew_av.avformat_network_init();
    ew_av.av_dict_set(&options, "rtsp_transport", "tcp", 0);
    ew_av.av_dict_set(&options, "timeout", "5000000", 0); /* microseconds */
    const int e = ew_av.avformat_open_input(&s->file, s->name, format, &options);
    ew_av.av_dict_free(&options);
    /* small negative errors are -errno, others FFmpeg's own */
    EW_CHECK(e == 0, EW_ERR_IO, "%s: cannot be opened: %s", s->name,
             e > -4096 ? strerror(-e) : "no answer that FFmpeg understands");
    return EW_OK;
}

/* The first frame to decode, from the file's stated length; without one its beginning. */
static int64_t first_frame(const struct ew_av_source *s)
{
    const AVStream *t = s->file->streams[s->stream];
    const int64_t span = (s->o.frames - 1) * s->o.stride + 1;
    int64_t n = t->nb_frames;
    if (n <= 0 && s->file->duration > 0 && t->avg_frame_rate.den > 0)
        n = (int64_t)((double)s->file->duration / AV_TIME_BASE * (double)t->avg_frame_rate.num /
                      (double)t->avg_frame_rate.den);
    return n > span && n < MAX_FRAMES ? (int64_t)((double)(n - span) * (0.5 + s->o.place)) : 0;
}

static ew_err open_video(struct ew_av_source *s)
{
    const AVCodec *decoder = NULL;
    EW_CHECK(ew_av.avformat_find_stream_info(s->file, NULL) >= 0, EW_ERR_FORMAT, "%s: is damaged",
             s->name);
    s->stream = ew_av.av_find_best_stream(s->file, AVMEDIA_TYPE_VIDEO, -1, -1, &decoder, 0);
    EW_CHECK(s->stream >= 0 && decoder, EW_ERR_FORMAT, "%s: has no video that can be decoded",
             s->name);
    const AVCodecParameters *p = s->file->streams[s->stream]->codecpar;
    EW_CHECK(p->width > 0 && p->height > 0 && p->width <= EW_VIDEO_SIDE &&
                 p->height <= EW_VIDEO_SIDE,
             EW_ERR_FORMAT, "%s: frames of %d x %d pixels", s->name, p->width, p->height);
    s->codec = ew_av.avcodec_alloc_context3(decoder);
    s->packet = ew_av.av_packet_alloc();
    s->frame = ew_av.av_frame_alloc();
    EW_CHECK(s->codec && s->packet && s->frame, EW_ERR_MEMORY, "%s: no memory", s->name);
    s->codec->thread_count = 1; /* the loader has its own threads */
    s->codec->max_pixels = (int64_t)EW_VIDEO_SIDE * EW_VIDEO_SIDE;
    EW_CHECK(ew_av.avcodec_parameters_to_context(s->codec, p) >= 0 &&
                 ew_av.avcodec_open2(s->codec, decoder, NULL) == 0,
             EW_ERR_FORMAT, "%s: its video cannot be decoded", s->name);
    s->first = s->o.first >= 0 ? s->o.first : s->o.frames > 0 ? first_frame(s) : 0;
    return EW_OK;
}

ew_err ew_av_open(const char *name, int fd, const struct ew_video_opts *o,
                  struct ew_av_source **out)
{
    EW_TRY(ew_av_libraries());
    struct ew_av_source *s = calloc(1, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "%s: no memory", name);
    s->name = name;
    s->fd = fd;
    s->o = *o;
    ew_err e = fd >= 0 ? open_file(s) : open_live(s);
    if (e == EW_OK)
        e = open_video(s);
    if (e != EW_OK)
        ew_av_close(s);
    else
        *out = s;
    return e;
}

/* ---- Frames ---- */

static struct SwsContext *scaler_to(const struct ew_av_source *s, int64_t h, int64_t w)
{
    return ew_av.sws_getContext((int)s->from[1], (int)s->from[0], (enum AVPixelFormat)s->format,
                                (int)w, (int)h, AV_PIX_FMT_RGB24, SWS_BILINEAR, NULL, NULL, NULL);
}

/* Makes the scalers for the frame's size and format, which may change within a source. */
static ew_err fit_scalers(struct ew_av_source *s)
{
    const int64_t w = s->frame->width, h = s->frame->height;
    EW_CHECK(w > 0 && h > 0 && w <= EW_VIDEO_SIDE && h <= EW_VIDEO_SIDE, EW_ERR_FORMAT,
             "%s: a frame of %lld x %lld pixels", s->name, (long long)w, (long long)h);
    if (s->scaler && s->from[0] == h && s->from[1] == w && s->format == s->frame->format)
        return EW_OK;
    const double by_h = (double)s->o.h / (double)h, by_w = (double)s->o.w / (double)w;
    const double grow = by_h > by_w ? by_h : by_w;
    s->scaled[0] = ew_max_i64(s->o.h, (int64_t)((double)h * grow + 0.5));
    s->scaled[1] = ew_max_i64(s->o.w, (int64_t)((double)w * grow + 0.5));
    s->from[0] = h;
    s->from[1] = w;
    s->format = s->frame->format;
    if (s->scaler)
        ew_av.sws_freeContext(s->scaler);
    if (s->copier)
        ew_av.sws_freeContext(s->copier);
    free(s->picture);
    s->scaler = scaler_to(s, s->scaled[0], s->scaled[1]);
    s->copier = s->o.full ? scaler_to(s, h, w) : NULL;
    s->picture = malloc((size_t)(s->scaled[0] * s->scaled[1] * 3) + 64);
    EW_CHECK(s->scaler && s->picture && (s->copier || !s->o.full), EW_ERR_FORMAT,
             "%s: frames of %lld x %lld cannot be scaled", s->name, (long long)w, (long long)h);
    return EW_OK;
}

static void scale(struct ew_av_source *s, struct SwsContext *by, uint8_t *to, int64_t w)
{
    const int pitch[] = {(int)w * 3};
    ew_av.sws_scale(by, (const uint8_t *const *)s->frame->data, s->frame->linesize, 0,
                    s->frame->height, (uint8_t *const[]){to}, pitch);
}

/* Scales and crops the decoded frame. */
static ew_err take(struct ew_av_source *s, struct ew_video_frame *out)
{
    const int64_t h = s->o.h, w = s->o.w;
    EW_TRY(fit_scalers(s));
    EW_TRY(ew_bytes_need(&out->pixels, (size_t)(3 * h * w)));
    scale(s, s->scaler, s->picture, s->scaled[1]);
    const int64_t y0 = (s->scaled[0] - h) / 2, x0 = (s->scaled[1] - w) / 2;
    for (int64_t y = 0; y < h; y++)
        memcpy(out->pixels.at + y * w * 3, s->picture + ((y0 + y) * s->scaled[1] + x0) * 3,
               (size_t)w * 3);
    out->h = h;
    out->w = w;
    out->full_h = s->from[0];
    out->full_w = s->from[1];
    const AVRational unit = s->file->streams[s->stream]->time_base;
    const int64_t at = s->frame->best_effort_timestamp;
    out->time_us = at != AV_NOPTS_VALUE && unit.den > 0
                       ? (int64_t)((double)at * 1e6 * (double)unit.num / (double)unit.den)
                       : 0;
    if (s->o.full) {
        /* the scaler may write whole vectors past the end of a row */
        EW_TRY(ew_bytes_need(&out->full, (size_t)(3 * s->from[0] * s->from[1]) + 64));
        scale(s, s->copier, out->full.at, s->from[1]);
        out->full.size = (size_t)(3 * s->from[0] * s->from[1]);
    }
    s->taken++;
    return EW_OK;
}

/* Feeds the decoder; false: end.  Skips packets that cannot be decoded, as players do. */
static bool feed(struct ew_av_source *s)
{
    if (s->drained)
        return false;
    if (ew_av.av_read_frame(s->file, s->packet) == 0) {
        if (s->packet->stream_index == s->stream)
            (void)ew_av.avcodec_send_packet(s->codec, s->packet);
        ew_av.av_packet_unref(s->packet);
        return true;
    }
    s->drained = true;
    return ew_av.avcodec_send_packet(s->codec, NULL) == 0;
}

ew_err ew_av_next(struct ew_av_source *s, struct ew_video_frame *out, bool *end)
{
    const int64_t start = ew_clock_ns();
    const bool live = s->fd < 0;
    *end = (s->o.frames > 0 && s->taken == s->o.frames) || (!live && s->decoded >= MAX_FRAMES);
    while (!*end) {
        if (ew_av.avcodec_receive_frame(s->codec, s->frame) == 0) {
            const int64_t at = s->decoded++ - s->first;
            if (at < 0 || at % s->o.stride)
                continue;
            EW_TRY(take(s, out));
            out->decode_ns = ew_clock_ns() - start;
            return EW_OK;
        }
        *end = !feed(s);
    }
    return EW_OK;
}
#else
ew_err ew_av_open(const char *name, int fd, const struct ew_video_opts *o,
                  struct ew_av_source **out)
{
    return ew_av_libraries();
}

ew_err ew_av_next(struct ew_av_source *s, struct ew_video_frame *out, bool *end)
{
    return ew_av_libraries();
}

void ew_av_close(struct ew_av_source *s)
{
}
#endif
