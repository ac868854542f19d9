/* SPDX-License-Identifier: Apache-2.0 */
/* Images in memory as a network's input: frames of a camera or a decoder instead of files. */
#ifndef EDGEWISE_PIXELS_H
#define EDGEWISE_PIXELS_H

#include "edgewise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Memory layout: interleaved bytes, or NV12's two planes (Y, then interleaved U and V for each 2 x
 * 2 pixels; BT.601, video range). */
enum ew_pixel_format {
    EW_PIXEL_RGB,
    EW_PIXEL_BGR,
    EW_PIXEL_RGBA, /* transparency is dropped */
    EW_PIXEL_BGRA,
    EW_PIXEL_GREY,
    EW_PIXEL_NV12
};

/* A picture of the caller's.  Zero it, set `size` and the rest. */
struct ew_pixels {
    size_t size;           /* sizeof(struct ew_pixels) */
    int format;            /* enum ew_pixel_format */
    int64_t width, height; /* NV12: even */
    const void *data;      /* the first row; NV12: of Y */
    int64_t stride;        /* bytes from a row to the next, negative upside down; 0: no gaps */
    const void *chroma;    /* NV12: the second plane; NULL: after the rows of the first */
    int64_t chroma_stride; /* 0: as stride */
};

/* Puts a picture from memory into image `index` of the batch of the first input, preprocessed as
 * the engine says.  Fails as ew_context_read_image does, and on invalid sizes.  One
 * thread at a time for each context; memory is taken only for NV12, and kept. */
EW_API ew_err ew_context_put_pixels(struct ew_context *c, int64_t index, const struct ew_pixels *p);

#ifdef __cplusplus
}
#endif

#endif
