/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding by libavformat, libavcodec and libswscale, which are opened when the first clip is read.
 */
#include "data/clip_file.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/library.h"
#include "base/mem.h"

bool ew_clip_is(const char *name)
{
    static const char *const ends[] = {".mp4", ".avi", ".mkv", ".mov", ".webm", ".mpg", ".m4v"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < EW_COUNT(ends); i++)
        if (strcasecmp(dot, ends[i]) == 0)
            return true;
    return false;
}

#if EW_HAVE_FFMPEG
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>

#define MAX_SIDE   8192
#define MAX_FRAMES 1000000 /* that are decoded of a file */

/* ---- Libraries ---- */

static struct {
    int (*open)(AVFormatContext **, const char *, const AVInputFormat *, AVDictionary **);
    int (*find_info)(AVFormatContext *, AVDictionary **);
    int (*best_stream)(AVFormatContext *, enum AVMediaType, int, int, const AVCodec **, int);
    int (*read)(AVFormatContext *, AVPacket *);
    void (*close)(AVFormatContext **);
    AVCodecContext *(*new_codec)(const AVCodec *);
    int (*set_parameters)(AVCodecContext *, const AVCodecParameters *);
    int (*open_codec)(AVCodecContext *, const AVCodec *, AVDictionary **);
    int (*send)(AVCodecContext *, const AVPacket *);
    int (*receive)(AVCodecContext *, AVFrame *);
    void (*free_codec)(AVCodecContext **);
    AVPacket *(*new_packet)(void);
    void (*drop_packet)(AVPacket *);
    void (*free_packet)(AVPacket **);
    AVFrame *(*new_frame)(void);
    void (*free_frame)(AVFrame **);
    void (*log_level)(int);
    struct SwsContext *(*new_scaler)(int, int, enum AVPixelFormat, int, int, enum AVPixelFormat,
                                     int, SwsFilter *, SwsFilter *, const double *);
    int (*scale)(struct SwsContext *, const uint8_t *const[], const int[], int, int,
                 uint8_t *const[], const int[]);
    void (*free_scaler)(struct SwsContext *);
} av;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static ew_err opened = EW_OK;
static char why[256];

static void open_libraries(void)
{
    const struct ew_symbol format[] = {
        {"avformat_open_input", &av.open},        {"avformat_find_stream_info", &av.find_info},
        {"av_find_best_stream", &av.best_stream}, {"av_read_frame", &av.read},
        {"avformat_close_input", &av.close},      {NULL, NULL}};
    const struct ew_symbol codec[] = {{"avcodec_alloc_context3", &av.new_codec},
                                      {"avcodec_parameters_to_context", &av.set_parameters},
                                      {"avcodec_open2", &av.open_codec},
                                      {"avcodec_send_packet", &av.send},
                                      {"avcodec_receive_frame", &av.receive},
                                      {"avcodec_free_context", &av.free_codec},
                                      {"av_packet_alloc", &av.new_packet},
                                      {"av_packet_unref", &av.drop_packet},
                                      {"av_packet_free", &av.free_packet},
                                      {NULL, NULL}};
    const struct ew_symbol util[] = {{"av_frame_alloc", &av.new_frame},
                                     {"av_frame_free", &av.free_frame},
                                     {"av_log_set_level", &av.log_level},
                                     {NULL, NULL}};
    const struct ew_symbol scale[] = {{"sws_getContext", &av.new_scaler},
                                      {"sws_scale", &av.scale},
                                      {"sws_freeContext", &av.free_scaler},
                                      {NULL, NULL}};
    const struct {
        const char *file;
        const struct ew_symbol *symbols;
    } all[] = {{EW_AVFORMAT_FILE, format},
               {EW_AVCODEC_FILE, codec},
               {EW_AVUTIL_FILE, util},
               {EW_SWSCALE_FILE, scale}};
    void *kept; /* for the life of the program */
    for (size_t i = 0; i < EW_COUNT(all) && opened == EW_OK; i++)
        opened = ew_library_open(all[i].file, all[i].symbols, &kept);
    if (opened == EW_OK)
        av.log_level(AV_LOG_QUIET); /* what is wrong with a file is said by whoever reads it */
    else
        snprintf(why, sizeof(why), "%s", ew_error_message());
}

/* ---- A file ---- */

struct clip {
    const char *path;
    const struct ew_clip_opts *o;
    AVFormatContext *file;
    AVCodecContext *codec;
    struct SwsContext *scaler;
    AVPacket *packet;
    AVFrame *frame;
    int stream;
    int64_t from[2];   /* size of the frames that the scaler is for */
    int64_t scaled[2]; /* and of what it makes of them */
    uint8_t *picture;  /* [scaled, 3] */
    int64_t first;     /* frame of the file that is wanted first */
    int64_t decoded, taken;
};

static void release(struct clip *c)
{
    if (c->scaler)
        av.free_scaler(c->scaler);
    if (c->codec)
        av.free_codec(&c->codec);
    if (c->file)
        av.close(&c->file);
    if (c->packet)
        av.free_packet(&c->packet);
    if (c->frame)
        av.free_frame(&c->frame);
    free(c->picture);
}

/* Where frames are wanted from, by what the file says of its length; a file that does not say is
 * read from its beginning. */
static int64_t first_frame(const struct clip *c)
{
    const AVStream *s = c->file->streams[c->stream];
    const int64_t span = (c->o->frames - 1) * c->o->stride + 1;
    int64_t n = s->nb_frames;
    if (n <= 0 && c->file->duration > 0 && s->avg_frame_rate.den > 0)
        n = (int64_t)((double)c->file->duration / AV_TIME_BASE * (double)s->avg_frame_rate.num /
                      (double)s->avg_frame_rate.den);
    return n > span && n < MAX_FRAMES ? (n - span) / 2 : 0;
}

static ew_err open_clip(struct clip *c)
{
    const AVCodec *decoder = NULL;
    EW_CHECK(av.open(&c->file, c->path, NULL, NULL) == 0, EW_ERR_FORMAT,
             "%s: no video file that FFmpeg knows, or a damaged one", c->path);
    EW_CHECK(av.find_info(c->file, NULL) >= 0, EW_ERR_FORMAT, "%s: is damaged", c->path);
    c->stream = av.best_stream(c->file, AVMEDIA_TYPE_VIDEO, -1, -1, &decoder, 0);
    EW_CHECK(c->stream >= 0 && decoder, EW_ERR_FORMAT, "%s: has no video that can be decoded",
             c->path);
    const AVCodecParameters *p = c->file->streams[c->stream]->codecpar;
    EW_CHECK(p->width > 0 && p->height > 0 && p->width <= MAX_SIDE && p->height <= MAX_SIDE,
             EW_ERR_FORMAT, "%s: frames of %d x %d pixels", c->path, p->width, p->height);
    c->codec = av.new_codec(decoder);
    c->packet = av.new_packet();
    c->frame = av.new_frame();
    EW_CHECK(c->codec && c->packet && c->frame, EW_ERR_MEMORY, "%s: no memory", c->path);
    c->codec->thread_count = 1; /* the loader has its own */
    EW_CHECK(av.set_parameters(c->codec, p) >= 0 && av.open_codec(c->codec, decoder, NULL) == 0,
             EW_ERR_FORMAT, "%s: its video cannot be decoded", c->path);
    c->first = first_frame(c);
    return EW_OK;
}

/* A scaler from frames of this size; they may change within a file. */
static ew_err fit_scaler(struct clip *c)
{
    const int64_t w = c->frame->width, h = c->frame->height;
    EW_CHECK(w > 0 && h > 0 && w <= MAX_SIDE && h <= MAX_SIDE, EW_ERR_FORMAT,
             "%s: a frame of %lld x %lld pixels", c->path, (long long)w, (long long)h);
    if (c->scaler && c->from[0] == h && c->from[1] == w)
        return EW_OK;
    const double by_h = (double)c->o->h / (double)h, by_w = (double)c->o->w / (double)w;
    const double grow = by_h > by_w ? by_h : by_w;
    c->scaled[0] = ew_max_i64(c->o->h, (int64_t)((double)h * grow + 0.5));
    c->scaled[1] = ew_max_i64(c->o->w, (int64_t)((double)w * grow + 0.5));
    c->from[0] = h;
    c->from[1] = w;
    if (c->scaler)
        av.free_scaler(c->scaler);
    free(c->picture);
    c->scaler =
        av.new_scaler((int)w, (int)h, (enum AVPixelFormat)c->frame->format, (int)c->scaled[1],
                      (int)c->scaled[0], AV_PIX_FMT_RGB24, SWS_BILINEAR, NULL, NULL, NULL);
    c->picture = malloc((size_t)(c->scaled[0] * c->scaled[1] * 3) + 64);
    EW_CHECK(c->scaler && c->picture, EW_ERR_FORMAT, "%s: frames of %lld x %lld cannot be scaled",
             c->path, (long long)w, (long long)h);
    return EW_OK;
}

/* The frame that was decoded, where it is one of those that are wanted. */
static ew_err take(struct clip *c, uint8_t *to)
{
    const int64_t h = c->o->h, w = c->o->w, at = c->decoded++ - c->first;
    if (at < 0 || at % c->o->stride)
        return EW_OK;
    EW_TRY(fit_scaler(c));
    const int pitch[] = {(int)c->scaled[1] * 3};
    av.scale(c->scaler, (const uint8_t *const *)c->frame->data, c->frame->linesize, 0,
             c->frame->height, (uint8_t *const[]){c->picture}, pitch);
    const int64_t y0 = (c->scaled[0] - h) / 2, x0 = (c->scaled[1] - w) / 2;
    to += c->taken++ * h * w * 3;
    for (int64_t y = 0; y < h; y++)
        memcpy(to + y * w * 3, c->picture + ((y0 + y) * c->scaled[1] + x0) * 3, (size_t)w * 3);
    return EW_OK;
}

static bool is_done(const struct clip *c)
{
    return c->taken == c->o->frames || c->decoded >= MAX_FRAMES;
}

/* All frames that the decoder has ready. */
static ew_err drain(struct clip *c, uint8_t *to)
{
    while (!is_done(c) && av.receive(c->codec, c->frame) == 0)
        EW_TRY(take(c, to));
    return EW_OK;
}

/* Packets that cannot be decoded are passed over, as players do. */
static ew_err decode(struct clip *c, uint8_t *to)
{
    while (!is_done(c) && av.read(c->file, c->packet) == 0) {
        ew_err e = EW_OK;
        if (c->packet->stream_index == c->stream && av.send(c->codec, c->packet) == 0)
            e = drain(c, to);
        av.drop_packet(c->packet);
        EW_TRY(e);
    }
    if (!is_done(c) && av.send(c->codec, NULL) == 0)
        EW_TRY(drain(c, to));
    return EW_OK;
}

static ew_err read_clip(struct clip *c, uint8_t *to)
{
    EW_TRY(open_clip(c));
    EW_TRY(decode(c, to));
    if (c->taken == 0 && c->first > 0) { /* shorter than it said: once more, from the beginning */
        const struct clip again = {.path = c->path, .o = c->o};
        release(c);
        *c = again;
        EW_TRY(open_clip(c));
        c->first = 0;
        EW_TRY(decode(c, to));
    }
    EW_CHECK(c->taken > 0, EW_ERR_FORMAT, "%s: has no frame that can be decoded", c->path);
    const size_t frame = (size_t)(c->o->h * c->o->w * 3);
    for (int64_t i = c->taken; i < c->o->frames; i++)
        memcpy(to + (size_t)i * frame, to + (size_t)(i - 1) * frame, frame);
    return EW_OK;
}

ew_err ew_clip_read(const char *path, const struct ew_clip_opts *o, uint8_t *to)
{
    pthread_once(&once, open_libraries);
    EW_CHECK(opened == EW_OK, EW_ERR_UNSUPPORTED, "%s: %s", path, why);
    struct clip c = {.path = path, .o = o};
    const ew_err e = read_clip(&c, to);
    release(&c);
    return e;
}
#else
ew_err ew_clip_read(const char *path, const struct ew_clip_opts *o, uint8_t *to)
{
    return ew_fail(EW_ERR_UNSUPPORTED, "%s: this build reads no video (EW_FFMPEG)", path);
}
#endif
