/* SPDX-License-Identifier: Apache-2.0 */
/* Images in the caller's memory as samples. */
#include "format/pixels.h"

#include "base/sized.h"

#define MAX_SIDE 65536

/* Bytes per pixel, offset of red, and step from red to green to blue. */
static const struct {
    int bytes, first, step, channels;
} packed[] = {
    [EW_PIXEL_RGB] = {3, 0, 1, 3},   [EW_PIXEL_BGR] = {3, 2, -1, 3}, [EW_PIXEL_RGBA] = {4, 0, 1, 3},
    [EW_PIXEL_BGRA] = {4, 2, -1, 3}, [EW_PIXEL_GREY] = {1, 0, 0, 1}, [EW_PIXEL_NV12] = {1, 0, 0, 3},
};

static uint8_t clamp(int v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* ITU-R BT.601, video range (Y 16 to 235), in 8-bit fixed point: what cameras and decoders give. */
static void to_rgb(int y, int u, int v, uint8_t *out)
{
    const int c = 298 * (y - 16), d = u - 128, e = v - 128;
    out[0] = clamp((c + 409 * e + 128) >> 8);
    out[1] = clamp((c - 100 * d - 208 * e + 128) >> 8);
    out[2] = clamp((c + 516 * d + 128) >> 8);
}

static ew_err from_nv12(const struct ew_pixels *p, struct ew_bytes *scratch, struct ew_sample *out)
{
    const int64_t stride = p->stride ? p->stride : p->width;
    const uint8_t *luma = p->data;
    const uint8_t *chroma = p->chroma ? p->chroma : luma + stride * p->height;
    const int64_t chroma_stride = p->chroma_stride ? p->chroma_stride : stride;
    EW_CHECK(p->width % 2 == 0 && p->height % 2 == 0, EW_ERR_ARG,
             "NV12 has even sides, not %lld x %lld", (long long)p->width, (long long)p->height);
    EW_CHECK(chroma_stride >= p->width, EW_ERR_ARG, "a row of chroma of %lld bytes holds no %lld",
             (long long)chroma_stride, (long long)p->width);
    EW_TRY(ew_bytes_need(scratch, (size_t)(p->width * p->height * 3)));
    uint8_t *to = scratch->at;
    for (int64_t y = 0; y < p->height; y++) {
        const uint8_t *uv = chroma + y / 2 * chroma_stride;
        for (int64_t x = 0; x < p->width; x++, to += 3)
            to_rgb(luma[y * stride + x], uv[x / 2 * 2], uv[x / 2 * 2 + 1], to);
    }
    *out = (struct ew_sample){.h = p->height,
                              .w = p->width,
                              .c = 3,
                              .sy = 3 * p->width,
                              .sx = 3,
                              .sc = 1,
                              .pixels = scratch->at};
    return EW_OK;
}

ew_err ew_pixels_sample(const struct ew_pixels *given, struct ew_bytes *scratch,
                        struct ew_sample *out)
{
    struct ew_pixels own;
    const struct ew_pixels *p = &own;
    EW_TRY(ew_sized_import(given, &own, sizeof(own)));
    EW_CHECK(p->format >= 0 && p->format <= EW_PIXEL_NV12, EW_ERR_ARG, "no pixel format %d",
             p->format);
    EW_CHECK(p->data && p->width > 0 && p->height > 0 && p->width <= MAX_SIDE &&
                 p->height <= MAX_SIDE,
             EW_ERR_ARG, "pixels of %lld x %lld", (long long)p->width, (long long)p->height);
    const int64_t row = packed[p->format].bytes * p->width;
    EW_CHECK(p->stride == 0 || p->stride >= row || p->stride <= -row, EW_ERR_ARG,
             "a row of %lld bytes holds no %lld", (long long)p->stride, (long long)row);
    if (p->format == EW_PIXEL_NV12) {
        EW_CHECK(p->stride >= 0, EW_ERR_ARG, "NV12 is not upside down");
        return from_nv12(p, scratch, out);
    }
    *out = (struct ew_sample){.h = p->height,
                              .w = p->width,
                              .c = packed[p->format].channels,
                              .sy = p->stride ? p->stride : row,
                              .sx = packed[p->format].bytes,
                              .sc = packed[p->format].step,
                              .pixels = (const uint8_t *)p->data + packed[p->format].first};
    return EW_OK;
}
