/* SPDX-License-Identifier: Apache-2.0 */
/* Images from memory as a network's input: frames of a camera or a decoder. */
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
    EW_PIXEL_RGBA, /* alpha is ignored */
    EW_PIXEL_BGRA,
    EW_PIXEL_GREY,
    EW_PIXEL_NV12
};

/* An image in the caller's memory.  Zero the struct, set `size` and the fields that you need. */
struct ew_pixels {
    size_t size;           /* sizeof(struct ew_pixels) */
    int format;            /* enum ew_pixel_format */
    int64_t width, height; /* NV12: even */
    const void *data;      /* the first row; NV12: of Y */
    int64_t stride;        /* bytes from row to row, negative for bottom-up images; 0: contiguous */
    const void *chroma;    /* the second plane; NULL: right after the first */
    int64_t chroma_stride; /* 0: as stride */
};

/* Writes an image from memory into image `index` of the first input's batch, with the engine's
 * preprocessing.  Fails as ew_context_read_image does, and on invalid sizes.  One thread at a time
 * for each context; allocates only for NV12, a buffer that is kept. */
EW_API ew_err ew_context_put_pixels(struct ew_context *c, int64_t index, const struct ew_pixels *p);

#ifdef __cplusplus
}
#endif

#endif
