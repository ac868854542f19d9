/* SPDX-License-Identifier: Apache-2.0 */
/* PNG (libpng) and JPEG (TurboJPEG). */
#include "data/image_file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/image_decoder.h"

#define MAX_FILE   ((size_t)256 << 20)
#define MAX_PIXELS ((uint64_t)64 << 20)

static bool is_png(const unsigned char *b, size_t size)
{
    return size >= 8 && memcmp(b, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static bool is_jpeg(const unsigned char *b, size_t size)
{
    return size >= 3 && memcmp(b, "\xff\xd8\xff", 3) == 0;
}

bool ew_image_is(const void *bytes, size_t size)
{
    return is_png(bytes, size) || is_jpeg(bytes, size);
}

struct ew_sample ew_image_sample(const struct ew_tensor *image)
{
    const int64_t *d = image->shape.dim;
    return (struct ew_sample){.pixels = image->data,
                              .h = d[0],
                              .w = d[1],
                              .c = d[2],
                              .sy = d[1] * d[2],
                              .sx = d[2],
                              .sc = 1};
}

#if EW_HAVE_IMAGE
#include <png.h>
#include <turbojpeg.h>

static ew_err check_size(int64_t w, int64_t h)
{
    EW_CHECK(w > 0 && h > 0, EW_ERR_FORMAT, "has no size: it is cut off or damaged");
    EW_CHECK((uint64_t)w <= MAX_PIXELS / (uint64_t)h, EW_ERR_LIMIT,
             "an image of %lld x %lld pixels, at most %llu are read", (long long)w, (long long)h,
             (unsigned long long)MAX_PIXELS);
    return EW_OK;
}

static ew_err new_image(int64_t w, int64_t h, int channels, struct ew_bytes *out, int64_t shape[3])
{
    shape[0] = h;
    shape[1] = w;
    shape[2] = channels;
    return ew_bytes_need(out, (size_t)(h * w * channels));
}

/* ---- PNG ---- */

/* Pixels are taken as stored: without the colour space that a file may name, as PyTorch and OpenCV
 * read them.  (libpng's simplified interface converts to sRGB, and takes 16 bits for linear.) */
struct png_file {
    const uint8_t *bytes;
    size_t size, at;
    png_structp png;
    png_infop info;
    uint8_t *wide; /* colours that become grey */
    char message[128];
};

static void png_failed(png_structp png, png_const_charp text)
{
    struct png_file *f = png_get_error_ptr(png);
    snprintf(f->message, sizeof(f->message), "%s", text);
    png_longjmp(png, 1);
}

static void png_warned(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void png_take(png_structp png, png_bytep to, size_t n)
{
    struct png_file *f = png_get_io_ptr(png);
    if (n > f->size - f->at)
        png_error(png, "read beyond end of data");
    memcpy(to, f->bytes + f->at, n);
    f->at += n;
}

/* Deflate compresses at most 1,032 to 1: rejects files too small for their stated size before
 * allocating it. */
static ew_err check_png(const struct png_file *f, png_uint_32 w, png_uint_32 h)
{
    EW_TRY(check_size(w, h));
    EW_CHECK((uint64_t)w * h / 8 <= (uint64_t)f->size * 1032, EW_ERR_FORMAT,
             "%zu bytes cannot hold %u x %u pixels", f->size, w, h);
    return EW_OK;
}

/* ITU-R BT.601 luma, as JPEG's own grey. */
static uint8_t luma(int r, int g, int b)
{
    return (uint8_t)((299 * r + 587 * g + 114 * b + 500) / 1000);
}

/* Rows of `channels` bytes a pixel: palettes and few bits expanded, of 16 bits the upper 8. */
static ew_err png_rows(struct png_file *f, int channels, struct ew_bytes *out, int64_t shape[3])
{
    png_set_read_fn(f->png, f, png_take);
    png_set_benign_errors(f->png, 1);
    png_set_keep_unknown_chunks(f->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(f->png, f->info);
    const png_uint_32 w = png_get_image_width(f->png, f->info);
    const png_uint_32 h = png_get_image_height(f->png, f->info);
    const bool colour = png_get_color_type(f->png, f->info) & PNG_COLOR_MASK_COLOR;
    const bool to_grey = colour && channels == 1;
    EW_TRY(check_png(f, w, h));
    EW_TRY(new_image(w, h, channels ? channels : colour ? 3 : 1, out, shape));
    if (to_grey) {
        f->wide = malloc((size_t)3 * w * h);
        EW_CHECK(f->wide, EW_ERR_MEMORY, "no memory for an image of %u x %u", w, h);
    }
    png_set_expand(f->png);
    png_set_strip_16(f->png);
    png_set_strip_alpha(f->png);
    if (!colour && shape[2] == 3)
        png_set_gray_to_rgb(f->png);
    const int passes = png_set_interlace_handling(f->png);
    png_read_update_info(f->png, f->info);
    const size_t row = png_get_rowbytes(f->png, f->info);
    EW_ASSERT(row == (size_t)w * (to_grey ? 3 : (size_t)shape[2]));
    uint8_t *pixels = to_grey ? f->wide : out->at;
    for (int pass = 0; pass < passes; pass++)
        for (size_t y = 0; y < h; y++)
            png_read_row(f->png, pixels + y * row, NULL);
    for (size_t i = 0; to_grey && i < (size_t)w * h; i++)
        out->at[i] = luma(f->wide[3 * i], f->wide[3 * i + 1], f->wide[3 * i + 2]);
    return EW_OK;
}

/* Errors of libpng end here.  Nothing that changes after setjmp is in its frame. */
static ew_err read_png(struct png_file *f, int channels, struct ew_bytes *out, int64_t shape[3])
{
    if (setjmp(png_jmpbuf(f->png)))
        return ew_fail(strstr(f->message, "emory") ? EW_ERR_MEMORY : EW_ERR_FORMAT, "%s",
                       f->message);
    return png_rows(f, channels, out, shape);
}

static ew_err decode_png(const void *bytes, size_t size, int channels, struct ew_bytes *out,
                         int64_t shape[3])
{
    struct png_file f = {.bytes = bytes, .size = size};
    f.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &f, png_failed, png_warned);
    f.info = f.png ? png_create_info_struct(f.png) : NULL;
    const ew_err e = f.info ? read_png(&f, channels, out, shape)
                            : ew_fail(EW_ERR_MEMORY, "no memory to decode it");
    png_destroy_read_struct(&f.png, &f.info, NULL);
    free(f.wide);
    return e;
}

/* ---- JPEG ---- */

/* True for warnings about recoverable damage, but not for a truncated image, whose rest would be
 * grey. */
static bool tolerable(tjhandle h)
{
    return tjGetErrorCode(h) == TJERR_WARNING && !strstr(tjGetErrorStr2(h), "remature end");
}

/* CMYK files are stored inverted (Adobe): each colour is ink times black. */
static void from_cmyk(const uint8_t *cmyk, size_t n, int channels, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        int rgb[3];
        for (int c = 0; c < 3; c++)
            rgb[c] = cmyk[4 * i + (size_t)c] * cmyk[4 * i + 3] / 255;
        for (int c = 0; c < 3 && channels == 3; c++)
            out[3 * i + (size_t)c] = (uint8_t)rgb[c];
        if (channels == 1)
            out[i] = luma(rgb[0], rgb[1], rgb[2]);
    }
}

struct jpeg {
    const void *bytes;
    size_t size;
    tjhandle h;
};

static ew_err decode_jpeg(const struct jpeg *j, int channels, struct ew_bytes *out,
                          int64_t shape[3])
{
    const tjhandle h = j->h;
    int w = 0, rows = 0, subsampling, space = 0;
    EW_CHECK(tjDecompressHeader3(h, j->bytes, j->size, &w, &rows, &subsampling, &space) == 0 ||
                 tolerable(h),
             EW_ERR_FORMAT, "%s", tjGetErrorStr2(h));
    EW_TRY(check_size(w, rows));
    const bool inks = space == TJCS_CMYK || space == TJCS_YCCK;
    if (channels == 0)
        channels = space == TJCS_GRAY ? 1 : 3;
    EW_TRY(new_image(w, rows, channels, out, shape));
    EW_CLEANUP(ew_free_ptr) uint8_t *cmyk = NULL;
    const size_t n = (size_t)w * (size_t)rows;
    if (inks) {
        cmyk = malloc(4 * n);
        EW_CHECK(cmyk, EW_ERR_MEMORY, "no memory for an image of %d x %d", w, rows);
    }
    const int format = inks ? TJPF_CMYK : channels == 3 ? TJPF_RGB : TJPF_GRAY;
    EW_CHECK(tjDecompress2(h, j->bytes, j->size, inks ? cmyk : out->at, w, 0, rows, format,
                           TJFLAG_ACCURATEDCT) == 0 ||
                 tolerable(h),
             EW_ERR_FORMAT, "%s", tjGetErrorStr2(h));
    if (inks)
        from_cmyk(cmyk, n, channels, out->at);
    return EW_OK;
}

/* ---- Both formats ---- */

ew_err ew_image_decode_here(const void *bytes, size_t size, int channels, void **kept,
                            struct ew_bytes *out, int64_t shape[3])
{
    if (is_png(bytes, size))
        return decode_png(bytes, size, channels, out, shape);
    EW_CHECK(is_jpeg(bytes, size), EW_ERR_FORMAT, "is neither PNG nor JPEG");
    if (!*kept)
        *kept = tjInitDecompress();
    EW_CHECK(*kept, EW_ERR_MEMORY, "no memory for the JPEG decoder");
    const ew_err e = decode_jpeg(&(struct jpeg){bytes, size, *kept}, channels, out, shape);
    if (e != EW_OK) { /* after an error the decoder's state is undefined */
        tjDestroy(*kept);
        *kept = NULL;
    }
    return e;
}

void ew_image_kept_free(void *kept)
{
    if (kept)
        tjDestroy(kept);
}

ew_err ew_image_put_png(FILE *f, const char *what, const uint8_t *pixels, const int64_t shape[3])
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)shape[1],
                       .height = (png_uint_32)shape[0],
                       .format = shape[2] == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY};
    errno = 0;
    EW_CHECK(png_image_write_to_stdio(&image, f, 0, pixels, 0, NULL), EW_ERR_IO, "%s: %s", what,
             ferror(f) && errno ? strerror(errno) : image.message);
    return EW_OK;
}

#else /* a build without the libraries */

static ew_err missing(void)
{
    return ew_fail(EW_ERR_UNSUPPORTED, "this build reads and writes no PNG and JPEG (EW_IMAGE)");
}

ew_err ew_image_decode_here(const void *bytes, size_t size, int channels, void **kept,
                            struct ew_bytes *out, int64_t shape[3])
{
    return missing();
}

void ew_image_kept_free(void *kept)
{
}

ew_err ew_image_put_png(FILE *f, const char *what, const uint8_t *pixels, const int64_t shape[3])
{
    return missing();
}
#endif

ew_err ew_image_decode(const void *bytes, size_t size, const char *what, int channels,
                       struct ew_arena *a, struct ew_tensor *out)
{
    EW_CHECK(channels == 0 || channels == 1 || channels == 3, EW_ERR_ARG,
             "%s: images have 1 or 3 channels, not %d", what, channels);
    struct ew_image_decoder *d = NULL;
    struct ew_image_job j = {.bytes = bytes, .size = size};
    ew_err err = ew_image_decoder_run(&d, channels, &j, 1);
    if (err == EW_OK && j.err != EW_OK)
        err = ew_fail(j.err, "%s", j.message);
    if (err == EW_OK) {
        const size_t n = (size_t)(j.shape[0] * j.shape[1] * j.shape[2]);
        *out =
            (struct ew_tensor){.dtype = EW_U8, .shape = {3, {j.shape[0], j.shape[1], j.shape[2]}}};
        out->data = ew_arena_alloc(a, n);
        if (out->data)
            memcpy(out->data, j.pixels, n);
        else
            err = ew_fail(EW_ERR_MEMORY, "no memory for an image of %zu bytes", n);
    }
    ew_image_decoder_free(d);
    return ew_fail_in(err, "%s", what);
}

ew_err ew_image_read(const char *path, int channels, struct ew_arena *a, struct ew_tensor *out)
{
    EW_CLEANUP(ew_free_ptr) char *bytes = NULL;
    size_t size;
    EW_TRY(ew_file_read(path, MAX_FILE, &bytes, &size));
    return ew_image_decode(bytes, size, path, channels, a, out);
}

ew_err ew_image_write_png(const char *path, const uint8_t *pixels, const int64_t shape[3])
{
    struct ew_file_out o;
    EW_TRY(ew_file_out_open(path, &o));
    const ew_err err = ew_image_put_png(o.f, path, pixels, shape);
    if (err == EW_OK)
        return ew_file_out_commit(&o);
    ew_file_out_abort(&o);
    return err;
}
