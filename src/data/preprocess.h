/* SPDX-License-Identifier: Apache-2.0 */
/* Preprocessing of images into a network's input, the same in all commands, training and the C
 * interface: the shorter side is resized, the centre cropped, and elements are (pixel / 255 -
 * mean[c]) / std[c].  Implemented in data/augment.h. */
#ifndef EW_DATA_PREPROCESS_H
#define EW_DATA_PREPROCESS_H

#include "data/data.h"

/* Special values of `resize`. */
#define EW_RESIZE_DEFAULT 0    /* the input's side / 0.875; an image of the input's size stays */
#define EW_RESIZE_COVER   (-1) /* the smallest size that covers the input, as in training */
#define EW_RESIZE_MAX     65536

struct ew_preprocess {
    int64_t resize;  /* length of the shorter side before the centre crop, or one of the above */
    bool normalised; /* mean and std are known */
    double mean[EW_SAMPLE_CHANNELS], std[EW_SAMPLE_CHANNELS]; /* of pixels in [0, 1]; std 0: 1 */
};

/* Channel means and standard deviations of ImageNet, as most trained networks expect. */
extern const struct ew_preprocess ew_preprocess_imagenet;

/* Overrides mean and std by option texts: "0.5" for all channels, "0.4,0.5,0.6", or "imagenet" as
 * the mean; NULL leaves it.  If only one was ever given, mean is 0 or std 1. */
ew_err ew_preprocess_parse(const char *mean, const char *std, struct ew_preprocess *p);

/* Sets mean and standard deviation of the training data, from at most 10,000 samples, which gives
 * an accuracy of a thousandth. */
ew_err ew_preprocess_measure(const struct ew_dataset *d, struct ew_preprocess *p);

/* Scale factor of an image [h, w] before the crop for an input [h, w]. */
double ew_preprocess_grow(const struct ew_preprocess *p, const int64_t image[2],
                          const int64_t input[2]);

/* Fails, with advice, unless the normalisation is known; `what` is the network's name. */
ew_err ew_preprocess_check(const struct ew_preprocess *p, const char *what);

#define EW_PREPROCESS_CHARS 256

/* "shorter side to 256, centre 224x224, mean 0.485,0.456,0.406, std 0.229,0.224,0.225" for an input
 * of [h, w, c]. */
const char *ew_preprocess_text(const struct ew_preprocess *p, const int64_t input[3],
                               char buf[EW_PREPROCESS_CHARS]);

#endif
