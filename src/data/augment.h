/* SPDX-License-Identifier: Apache-2.0 */
/* Augmentation and preprocessing: from decoded pixels to a network's input (resize, crop, flip,
 * rotate, erase, normalise).  All random draws are functions of (seed, epoch, sample), so the
 * result does not depend on threads. */
#ifndef EW_DATA_AUGMENT_H
#define EW_DATA_AUGMENT_H

#include "data/preprocess.h"

/* Augmentation of training images; all zero: none. */
struct ew_augment {
    int64_t crop;  /* random crop after padding by this many black pixels on each side; 0: centre
                    * crop */
    bool flip;     /* horizontal flip with probability 1/2 */
    double rotate; /* rotation by a random angle in [-rotate, rotate] degrees, black outside */
    double erase;  /* probability that a rectangle is set to the mean */
    bool time;     /* clips: from a random position in their file instead of its middle */
    double zoom;   /* random resized crop: smallest share of the area, as in ImageNet training; 0:
                    * off */
};

/* Parses "none", "standard" (crop=4,flip), or "crop=4,flip,rotate=15,erase=0.25,zoom=0.08,time". */
ew_err ew_augment_parse(const char *text, struct ew_augment *out);

/* Random position of a clip in its file, -0.5 to 0.5, for this epoch and sample. */
double ew_augment_place(uint64_t seed, int64_t epoch, int64_t index);

/* Size, preprocessing and augmentation of a batch's images. */
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

/* Writes [h, w, c] floats.  `index` is the sample's number.  Allocates only for an image larger
 * than all before. */
ew_err ew_augmenter_run(struct ew_augmenter *a, const struct ew_sample *s, int64_t epoch,
                        int64_t index, float *out);

#endif
