/* SPDX-License-Identifier: Apache-2.0 */
/* FFmpeg's libraries, opened at run time when a video is first read or written. */
#ifndef EW_DATA_AV_LIBRARIES_H
#define EW_DATA_AV_LIBRARIES_H

#include "base/library.h"

/* Functions of libavformat, libavcodec, libavutil and libswscale; lists end with a nameless one. */
struct ew_av_symbols {
    const struct ew_symbol *format, *codec, *util, *scale;
};

/* Resolves the functions, and silences FFmpeg's log, since callers report errors.  The libraries
 * stay open for the life of the program.  EW_ERR_UNSUPPORTED if one is missing. */
ew_err ew_av_load(const struct ew_av_symbols *s);

#endif
