/* SPDX-License-Identifier: Apache-2.0 */
/* A trained classifier and the images it expects: what eval, quantize and bench --eval share. */
#ifndef EW_CLI_CLASSIFIER_H
#define EW_CLI_CLASSIFIER_H

#include "cli/cmd.h"
#include "data/loader.h"
#include "graph/graph.h"

struct ew_classifier_opts {
    const char *mean, *std; /* NULL: the file's */
    int64_t resize;         /* the shorter side before the network's input is cut out; 0: none */
};

/* clang-format off */
/* Rows of a command's option table for `part`, a struct ew_classifier_opts in struct `owner`. */
#define EW_CLASSIFIER_FIELDS(owner, part)                                                          \
    {.name = "mean", .type = EW_FIELD_STR, .offset = offsetof(owner, part.mean),                   \
     .metavar = "M,M,M", .help = "subtracted from pixels in [0, 1]; \"imagenet\" sets mean and "   \
     "std; default: the file's, where it says"},                                                   \
    {.name = "std", .type = EW_FIELD_STR, .offset = offsetof(owner, part.std),                     \
     .metavar = "D,D,D", .help = "pixels are divided by it, by channel"},                          \
    {.name = "resize", .type = EW_FIELD_INT, .offset = offsetof(owner, part.resize), .def = "0",   \
     .min = 0, .max = 65536, .metavar = "N", .help = "make the shorter side N, then cut the "      \
     "network's input out of the middle; 0: make it just cover the input"}
/* clang-format on */

struct ew_classifier {
    struct ew_graph *net; /* images [N, H, W, C] to scores [N, classes], batch 1 */
    float mean[EW_SAMPLE_CHANNELS], std[EW_SAMPLE_CHANNELS];
    bool normalised; /* mean and std are known */
    int64_t resize;  /* as in the options */
};

/* Reads FILE.onnx or a checkpoint, or builds a network of the zoo with random weights, which it
 * says.  Release with fini, also after a failure. */
ew_err ew_classifier_load(const char *what, const struct ew_classifier_opts *o,
                          struct ew_classifier *out);
void ew_classifier_fini(struct ew_classifier *k);

/* A split of a data set as the classifier expects its images: "DATA", "DATA:N" for N samples of it,
 * spread evenly.  The test split, or the training split where `train` or there is no other. */
struct ew_image_set {
    struct ew_dataset *data;
    struct ew_loader_opts loader;
    int64_t *subset; /* NULL: all */
};

ew_err ew_image_set_open(struct ew_cmd_call *c, const char *what, const struct ew_classifier *k,
                         bool train, struct ew_image_set *out);
/* Images to measure ranges on, of the training split: "DATA" means 1000 of them. */
ew_err ew_image_set_open_calib(struct ew_cmd_call *c, const char *what,
                               const struct ew_classifier *k, struct ew_image_set *out);
void ew_image_set_close(struct ew_image_set *s);

#endif
