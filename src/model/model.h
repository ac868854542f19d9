/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of a model family: one file model_<family>.c, whose descriptor `const struct
 * ew_family ew_family_<family>` is the last thing in it.  The build collects them. */
#ifndef EW_MODEL_MODEL_H
#define EW_MODEL_MODEL_H

#include "model/build.h"
#include "model/init.h"

/* One network of a family. */
struct ew_variant {
    const char *name;    /* in the CLI and on disk: never changes */
    const char *studies; /* who uses it: "NX, ENGINE"; NULL: none */
    const char *about;   /* one line, where the family's does not say it; or NULL */
    int64_t height, width, channels, classes; /* its own input and number of classes */
    const void *spec;                         /* the family's own struct */
    int64_t frames;                           /* of video; 0: images */
};

struct ew_family {
    const char *name;
    const char *about;  /* one line: the network, and whose */
    const char *widths; /* one line: the gates in order, and what --width rounds to */
    const struct ew_variant *variants;
    int n_variants;
    struct ew_init init; /* of fresh weights */
    /* From the input [N, H, W, C], of video [N, T, H, W, C], to the scores [N, classes]: returns
     * their value. */
    int (*build)(struct ew_builder *b, const struct ew_variant *v, int x);
};

int ew_family_count(void);
const struct ew_family *ew_family_at(int i);

/* The variant called `name` and its family.  Fails naming the nearest one. */
ew_err ew_variant_find(const char *name, const struct ew_family **family,
                       const struct ew_variant **out);

#endif
