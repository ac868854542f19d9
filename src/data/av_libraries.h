/* SPDX-License-Identifier: Apache-2.0 */
/* FFmpeg's libraries, opened when a video is first read or written. */
#ifndef EW_DATA_AV_LIBRARIES_H
#define EW_DATA_AV_LIBRARIES_H

#include "base/library.h"

/* Functions of libavformat, libavcodec, libavutil and libswscale; lists end with a nameless one. */
struct ew_av_symbols {
    const struct ew_symbol *format, *codec, *util, *scale;
};

/* Finds them, and silences the libraries: what is wrong with a file is said by whoever reads it.
 * They stay open for the life of the program.  EW_ERR_UNSUPPORTED where one is missing. */
ew_err ew_av_load(const struct ew_av_symbols *s);

#endif
