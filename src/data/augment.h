/* SPDX-License-Identifier: Apache-2.0 */
/* From decoded pixels to a network's input: resize, crop, flip, rotate, erase, normalise.  Every
 * draw is fixed by (seed, epoch, sample), so the result does not depend on who makes it or when. */
#ifndef EW_DATA_AUGMENT_H
#define EW_DATA_AUGMENT_H

#include "data/preprocess.h"

/* What is done to training images; all zero: nothing. */
struct ew_augment {
    int64_t crop;  /* pixels of black border on each side, then a window anywhere; 0: the middle */
    bool flip;     /* left and right, every other time */
    double rotate; /* degrees: an angle between -rotate and rotate, black outside */
    double erase;  /* probability that a rectangle is set to the mean */
    bool time;     /* clips: from anywhere in their file, not from its middle */
    double zoom;   /* smallest share of the area that a random window takes before it is resized to
                      the target, as in ImageNet training; 0: off */
};

/* Text of these: "none", "standard" (crop=4,flip), or
 * "crop=4,flip,rotate=15,erase=0.25,zoom=0.08,time". */
ew_err ew_augment_parse(const char *text, struct ew_augment *out);

/* Where in its file a clip is taken from, -0.5 to 0.5: drawn for this epoch and sample. */
double ew_augment_place(uint64_t seed, int64_t epoch, int64_t index);

/* What a batch's images look like. */
struct ew_image_spec {
    int64_t h, w, c;
    struct ew_preprocess prep;
    struct ew_augment augment;
    uint64_t seed;
};

/* Tables and scratch memory of one thread. */
struct ew_augmenter;

ew_err ew_augmenter_new(const struct ew_image_spec *spec, struct ew_augmenter **out);
void ew_augmenter_free(struct ew_augmenter *a);

/* Writes [h, w, c] floats.  `index` is the sample's number.  Allocates only where an image is
 * larger than all before it. */
ew_err ew_augmenter_run(struct ew_augmenter *a, const struct ew_sample *s, int64_t epoch,
                        int64_t index, float *out);

#endif
