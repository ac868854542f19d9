/* SPDX-License-Identifier: Apache-2.0 */
/* Reading PNG and JPEG files, in the decoder process, and writing PNG.  A build without the
 * libraries fails each call with EW_ERR_UNSUPPORTED. */
#ifndef EW_DATA_IMAGE_FILE_H
#define EW_DATA_IMAGE_FILE_H

#include <stdio.h>

#include "data/data.h"
#include "graph/tensor.h"

/* Reads an image as uint8 [H, W, channels]; channels is 1 (grey) or 3 (RGB), 0: as in the file.
 * Alpha is dropped.  The data is in the arena. */
ew_err ew_image_read(const char *path, int channels, struct ew_arena *a, struct ew_tensor *out);

/* A sample that borrows an image [H, W, C]. */
struct ew_sample ew_image_sample(const struct ew_tensor *image);

/* ew_image_read from memory; `what` is for messages. */
ew_err ew_image_decode(const void *bytes, size_t size, const char *what, int channels,
                       struct ew_arena *a, struct ew_tensor *out);

/* The same in this process, with a reusable buffer and decoder: *kept is NULL before the first
 * call, and freed with ew_image_kept_free.  For the decoder process, and for tests. */
ew_err ew_image_decode_here(const void *bytes, size_t size, int channels, void **kept,
                            struct ew_bytes *out, int64_t shape[3]);
void ew_image_kept_free(void *kept); /* NULL is fine */

/* True for the first bytes of a PNG or JPEG file. */
bool ew_image_is(const void *bytes, size_t size);

/* Writes uint8 [h, w, c] pixels, c 1 or 3, as a PNG file, atomically. */
ew_err ew_image_write_png(const char *path, const uint8_t *pixels, const int64_t shape[3]);

/* The same into an open file; `what` is for messages. */
ew_err ew_image_put_png(FILE *f, const char *what, const uint8_t *pixels, const int64_t shape[3]);

#endif
