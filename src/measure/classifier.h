/* SPDX-License-Identifier: Apache-2.0 */
/* A trained classifier and data sets preprocessed for it; shared by eval, quantize and bench
 * --eval. */
#ifndef EW_MEASURE_CLASSIFIER_H
#define EW_MEASURE_CLASSIFIER_H

#include "data/loader.h"
#include "network/image_opts.h"
#include "network/network.h"

struct ew_classifier {
    struct ew_network network;
    struct ew_graph *net; /* images [N, H, W, C] to scores [N, classes], batch 1 */
    struct ew_preprocess prep;
};

/* Opens FILE.onnx, a checkpoint, or a network of the zoo with random weights (with a message).  The
 * image options are stored in the graph.  Release with fini, also after a failure. */
ew_err ew_classifier_load(const char *what, const struct ew_image_opts *o,
                          struct ew_classifier *out);
/* The same with every output of the network as it is, a softmax and probabilities included. */
ew_err ew_classifier_load_whole(const char *what, const struct ew_image_opts *o,
                                struct ew_classifier *out);
/* Also opens engines: `net` is then the graph of network.context, which has these threads. */
ew_err ew_classifier_open(const char *what, const struct ew_image_opts *o, int threads,
                          struct ew_classifier *out);
void ew_classifier_fini(struct ew_classifier *k);

/* What images are for decides on the split: the first that the data set has of test, train for
 * evaluation; train, test for training; train, test, unlabelled for calibration; and test, train,
 * unlabelled for comparing outputs. */
enum ew_images_for { EW_FOR_EVALUATION, EW_FOR_TRAINING, EW_FOR_CALIBRATION, EW_FOR_COMPARISON };

/* A split of a data set, preprocessed for the classifier: "DATA", or "DATA:N" for N samples spread
 * evenly. */
struct ew_image_set {
    const struct ew_dataset *data;
    struct ew_dataset *own; /* data, if it is closed with the set; else NULL */
    struct ew_loader_opts loader;
    int64_t *subset; /* NULL: all */
    int64_t asked;   /* N of "DATA:N", which may exceed the split; 0: all */
};

ew_err ew_image_set_open(const char *what, const struct ew_classifier *k, enum ew_images_for use,
                         struct ew_image_set *out);
/* The same for an open data set, which the caller keeps; `count` 0: all. */
ew_err ew_image_set_of(const struct ew_dataset *data, const struct ew_classifier *k,
                       enum ew_images_for use, int64_t count, struct ew_image_set *out);
/* Calibration images: "DATA" means 1000 of them. */
ew_err ew_image_set_open_calib(const char *what, const struct ew_classifier *k,
                               struct ew_image_set *out);
void ew_image_set_close(struct ew_image_set *s);

#endif
