/* SPDX-License-Identifier: Apache-2.0 */
/* How an image becomes a network's input: the one rule of all commands, of training and of the C
 * interface.  The shorter side is resized, the centre is cropped, and elements are
 * (pixel / 255 - mean[c]) / std[c].  data/augment.h does it. */
#ifndef EW_DATA_PREPROCESS_H
#define EW_DATA_PREPROCESS_H

#include "data/data.h"

/* Of `resize`, beside a number of pixels. */
#define EW_RESIZE_DEFAULT 0    /* the input's side / 0.875; an image of the input's size stays */
#define EW_RESIZE_COVER   (-1) /* what just covers the input, as training does */
#define EW_RESIZE_MAX     65536

struct ew_preprocess {
    int64_t resize;  /* the shorter side before the centre is cropped, or one of the above */
    bool normalised; /* mean and std are known */
    double mean[EW_SAMPLE_CHANNELS], std[EW_SAMPLE_CHANNELS]; /* of pixels in [0, 1]; std 0: 1 */
};

/* Channel means and deviations of ImageNet's training images, as most trained networks want. */
extern const struct ew_preprocess ew_preprocess_imagenet;

/* Puts the texts of options over what is known: "0.5" for all channels, "0.4,0.5,0.6", or
 * "imagenet" as the mean; NULL leaves it.  Where only one was ever said, mean is 0 and std 1. */
ew_err ew_preprocess_parse(const char *mean, const char *std, struct ew_preprocess *p);

/* Normalises by mean and deviation of the training data, from at most 10,000 samples: they are
 * within a thousandth by then. */
ew_err ew_preprocess_measure(const struct ew_dataset *d, struct ew_preprocess *p);

/* By how much an image of h x w pixels grows before a window of in_h x in_w is taken. */
double ew_preprocess_grow(const struct ew_preprocess *p, const int64_t image[2],
                          const int64_t input[2]);

/* EW_OK where it is normalised, else a failure that says how to; `what` is the network's name. */
ew_err ew_preprocess_check(const struct ew_preprocess *p, const char *what);

#define EW_PREPROCESS_CHARS 256

/* "shorter side to 256, centre 224x224, mean 0.485,0.456,0.406, std 0.229,0.224,0.225" for an input
 * of [h, w, c]. */
const char *ew_preprocess_text(const struct ew_preprocess *p, const int64_t input[3],
                               char buf[EW_PREPROCESS_CHARS]);

#endif
