/* SPDX-License-Identifier: Apache-2.0 */
/* Opening FFmpeg's libraries. */
#include "data/av_libraries.h"

#if EW_HAVE_FFMPEG
#include <pthread.h>
#include <stdio.h>

#include "base/library.h"
#include "base/mem.h"

struct ew_av ew_av;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static ew_err opened = EW_OK;
static char why[256];

static ew_err open_all(void)
{
#define SYMBOL(name) {#name, &ew_av.name},
    const struct ew_symbol format[] = {EW_AVFORMAT(SYMBOL){NULL, NULL}};
    const struct ew_symbol codec[] = {EW_AVCODEC(SYMBOL){NULL, NULL}};
    const struct ew_symbol util[] = {EW_AVUTIL(SYMBOL){NULL, NULL}};
    const struct ew_symbol scale[] = {EW_SWSCALE(SYMBOL){NULL, NULL}};
    const struct {
        const char *file;
        const struct ew_symbol *symbols;
    } all[] = {{EW_AVFORMAT_FILE, format},
               {EW_AVCODEC_FILE, codec},
               {EW_AVUTIL_FILE, util},
               {EW_SWSCALE_FILE, scale}};
    void *kept; /* for the life of the program */
    for (size_t i = 0; i < EW_COUNT(all); i++)
        EW_TRY(ew_library_open(all[i].file, all[i].symbols, &kept));
    ew_av.av_log_set_level(AV_LOG_QUIET);
    return EW_OK;
}

static void open_once(void)
{
    opened = open_all();
    if (opened != EW_OK)
        snprintf(why, sizeof(why), "%s", ew_error_message());
}

ew_err ew_av_libraries(void)
{
    pthread_once(&once, open_once);
    EW_CHECK(opened == EW_OK, EW_ERR_UNSUPPORTED, "%s", why);
    return EW_OK;
}

#else

ew_err ew_av_libraries(void)
{
    return ew_fail(EW_ERR_UNSUPPORTED, "this build reads no video (EW_FFMPEG)");
}

#endif
