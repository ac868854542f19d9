/* SPDX-License-Identifier: Apache-2.0 */
/* Pixels to what a network takes; files to pixels is data/image_file.h. */
#ifndef EW_FORMAT_IMAGE_INPUT_H
#define EW_FORMAT_IMAGE_INPUT_H

#include "graph/tensor.h"

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
