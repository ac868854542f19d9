/* SPDX-License-Identifier: Apache-2.0 */
/* PNG and JPEG files to pixels, and pixels to what a network takes. */
#ifndef EW_FORMAT_IMAGE_FILE_H
#define EW_FORMAT_IMAGE_FILE_H

#include "graph/tensor.h"

/* Reads an image as uint8 [H, W, channels]; channels is 1 (grey) or 3 (RGB), 0: as in the file.
 * Transparency is dropped.  The data lies in the arena. */
ew_err ew_image_read(const char *path, int channels, struct ew_arena *a, struct ew_tensor *out);

/* The same from bytes; `what` is for messages. */
ew_err ew_image_decode(const void *bytes, size_t size, const char *what, int channels,
                       struct ew_arena *a, struct ew_tensor *out);

/* True for the first bytes of a PNG or JPEG file. */
bool ew_image_is(const void *bytes, size_t size);

#define EW_IMAGE_CHANNELS 4

/* How pixels become elements: (pixel * scale - mean[c]) / std[c]. */
struct ew_image_prep {
    int64_t resize; /* the shorter side before cropping; 0: only where the image is too small */
    double scale;
    double mean[EW_IMAGE_CHANNELS], std[EW_IMAGE_CHANNELS];
    bool channels_last; /* of the network's input */
};

/* Resizes (bilinear), takes the middle and normalises `image` [H, W, C] into `in`, a float32, uint8
 * or int8 tensor of one image: [1, C, H, W], [1, H, W, C] or without the 1. */
ew_err ew_image_to_input(const struct ew_tensor *image, const struct ew_image_prep *p,
                         struct ew_tensor *in);

/* Height, width and channels that the input asks for; fails where it is no image. */
ew_err ew_image_input_size(const struct ew_tensor *in, bool channels_last, int64_t size[3]);

#endif
