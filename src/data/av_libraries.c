/* SPDX-License-Identifier: Apache-2.0 */
/* Opening FFmpeg's libraries. */
#include "data/av_libraries.h"

#include "base/mem.h"

#if EW_HAVE_FFMPEG
#include <libavcodec/avcodec.h>

ew_err ew_av_load(const struct ew_av_symbols *s)
{
    void (*log_level)(int);
    const struct ew_symbol quiet[] = {{"av_log_set_level", &log_level}, {NULL, NULL}};
    const struct {
        const char *file;
        const struct ew_symbol *symbols;
    } all[] = {{EW_AVFORMAT_FILE, s->format},
               {EW_AVCODEC_FILE, s->codec},
               {EW_AVUTIL_FILE, s->util},
               {EW_AVUTIL_FILE, quiet},
               {EW_SWSCALE_FILE, s->scale}};
    void *kept; /* for the life of the program */
    for (size_t i = 0; i < EW_COUNT(all); i++)
        EW_TRY(ew_library_open(all[i].file, all[i].symbols, &kept));
    log_level(AV_LOG_QUIET);
    return EW_OK;
}

#else

ew_err ew_av_load(const struct ew_av_symbols *s)
{
    return ew_fail(EW_ERR_UNSUPPORTED, "this build has no FFmpeg");
}

#endif
