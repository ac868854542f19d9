/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of a model family: one file model_<family>.c that ends in the descriptor `const
 * struct ew_family ew_family_<family>`.  The build collects them. */
#ifndef EW_MODEL_MODEL_H
#define EW_MODEL_MODEL_H

#include "model/build.h"
#include "model/init.h"

/* One network of a family. */
struct ew_variant {
    const char *name;    /* in the CLI and in files: never changes */
    const char *studies; /* studies that use it: "NX, ENGINE"; NULL: none */
    const char *about;   /* one line, if it differs from the family's; or NULL */
    int64_t height, width, channels, classes; /* default input and number of classes */
    const void *spec;                         /* the family's own struct */
    int64_t frames;                           /* of video; 0: images */
};

struct ew_family {
    const char *name;
    const char *about;  /* one line: the network and its authors */
    const char *widths; /* one line: the free widths in order, and the rounding of --width */
    const struct ew_variant *variants;
    int n_variants;
    struct ew_init init; /* weight initialisation */
    /* Adds the layers from the input x [N, H, W, C], of video [N, T, H, W, C], to the scores [N,
     * classes]; returns their value. */
    int (*build)(struct ew_builder *b, const struct ew_variant *v, int x);
};

int ew_family_count(void);
const struct ew_family *ew_family_at(int i);

/* Finds a variant and its family.  The error names the closest match. */
ew_err ew_variant_find(const char *name, const struct ew_family **family,
                       const struct ew_variant **out);

#endif
