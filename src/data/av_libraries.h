/* SPDX-License-Identifier: Apache-2.0 */
/* FFmpeg's libraries, opened at run time when a video is first read or written. */
#ifndef EW_DATA_AV_LIBRARIES_H
#define EW_DATA_AV_LIBRARIES_H

#include "base/err.h"

/* Opens the libraries, once and for the life of the program, and silences FFmpeg's log, since
 * callers report errors.  EW_ERR_UNSUPPORTED if this build or machine has no FFmpeg. */
ew_err ew_av_libraries(void);

#if EW_HAVE_FFMPEG
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>

/* clang-format off */
#define EW_AVFORMAT(X)                                                                             \
    X(avformat_alloc_context) X(avformat_open_input) X(av_find_input_format)                       \
    X(avformat_find_stream_info) X(av_find_best_stream) X(av_read_frame) X(avformat_close_input)   \
    X(avformat_network_init) X(avio_alloc_context) X(avio_context_free)                            \
    X(avformat_alloc_output_context2) X(avformat_new_stream) X(avio_open) X(avio_closep)           \
    X(avformat_write_header) X(av_interleaved_write_frame) X(av_write_trailer)                     \
    X(avformat_free_context)
#define EW_AVCODEC(X)                                                                              \
    X(avcodec_alloc_context3) X(avcodec_parameters_to_context) X(avcodec_open2)                    \
    X(avcodec_send_packet) X(avcodec_receive_frame) X(avcodec_free_context) X(av_packet_alloc)     \
    X(av_packet_unref) X(av_packet_free) X(avcodec_find_encoder)                                   \
    X(avcodec_parameters_from_context) X(avcodec_send_frame) X(avcodec_receive_packet)             \
    X(av_packet_rescale_ts)
#define EW_AVUTIL(X)                                                                               \
    X(av_frame_alloc) X(av_frame_free) X(av_malloc) X(av_freep) X(av_dict_set) X(av_dict_free)     \
    X(av_frame_get_buffer) X(av_frame_make_writable) X(av_log_set_level)
#define EW_SWSCALE(X)                                                                              \
    X(sws_getContext) X(sws_scale) X(sws_freeContext) X(sws_getCachedContext)

/* The functions; set by ew_av_libraries. */
#define EW_AV_POINTER(name) __typeof__(name) *name;
struct ew_av {
    EW_AVFORMAT(EW_AV_POINTER)
    EW_AVCODEC(EW_AV_POINTER)
    EW_AVUTIL(EW_AV_POINTER)
    EW_SWSCALE(EW_AV_POINTER)
};
/* clang-format on */
extern struct ew_av ew_av;
#endif

#endif
