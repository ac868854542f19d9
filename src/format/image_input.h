/* SPDX-License-Identifier: Apache-2.0 */
/* Preprocessing of pixels into a network's input tensor, by the rule of data/preprocess.h. Decoding
 * files is in data/image_file.h. */
#ifndef EW_FORMAT_IMAGE_INPUT_H
#define EW_FORMAT_IMAGE_INPUT_H

#include "data/preprocess.h"
#include "graph/graph.h"

/* A preprocessor with its tables and buffers.  One thread at a time. */
struct ew_image_input;

/* For an input `v` that takes images: [N, C, H, W], [N, H, W, C] or without the N, as float32,
 * uint8 or int8.  Fails if the normalisation is not known, unless the input is uint8, which then
 * takes the pixels unchanged.  `what` is the network's name, for messages. */
ew_err ew_image_input_new(const struct ew_value *v, const struct ew_preprocess *p, const char *what,
                          struct ew_image_input **out);
void ew_image_input_free(struct ew_image_input *in); /* NULL is fine */

/* Height, width and channels; clips are frames stacked along the height. */
const int64_t *ew_image_input_size(const struct ew_image_input *in);

#define EW_IMAGE_INPUT_CHARS (EW_PREPROCESS_CHARS + 40)

/* Describes the preprocessing as text; uint8 inputs have their own normalisation. */
const char *ew_image_input_text(const struct ew_image_input *in, char buf[EW_IMAGE_INPUT_CHARS]);

/* Resizes, crops and normalises `image` (h, w, c and strides; 1 or 3 channels) into image `index`
 * of the batch in `to`.  Of a clip, frames stacked along the height, it processes each frame. */
ew_err ew_image_input_put(struct ew_image_input *in, const struct ew_sample *image, int64_t index,
                          struct ew_tensor *to);

/* Reads a PNG or JPEG file, for clips a video file, and does the same. */
ew_err ew_image_input_read(struct ew_image_input *in, const char *path, int64_t index,
                           struct ew_tensor *to);

#endif
