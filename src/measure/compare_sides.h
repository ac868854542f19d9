/* SPDX-License-Identifier: Apache-2.0 */
/* Two networks on the same inputs, or one and what another program saved, value by value. */
#ifndef EW_MEASURE_COMPARE_SIDES_H
#define EW_MEASURE_COMPARE_SIDES_H

#include "measure/classifier.h"
#include "plan/plan.h"

/* One value that both have under the same name, over all inputs. */
struct ew_agreement {
    const char *name, *op; /* op of the first network's node */
    struct ew_shape shape;
    double signal, noise; /* sums of squares: of the first's, of the difference */
    double worst;         /* largest difference */
    double largest;       /* largest magnitude of the first */
    int a, b;             /* outputs of the plans */
    bool output;          /* of the network */
};

struct ew_compared {
    struct ew_arena arena;
    struct ew_classifier side[2];
    struct ew_graph *graph[2];
    struct ew_plan *plan[2];
    struct ew_agreement *v; /* in the first one's order of running */
    int n;
    int64_t inputs;   /* that were run */
    int64_t same_top; /* of them: the first output has its largest element at the same place; -1:
                         that output was not compared */
};

struct ew_compare_how {
    bool layers; /* all values that both name alike, else outputs only */
    struct ew_image_opts images;
    int threads;
};

/* Opens both.  Release with close, also after a failure. */
ew_err ew_compare_open(const char *a, const char *b, const struct ew_compare_how *how,
                       struct ew_compared *out);
void ew_compare_close(struct ew_compared *c);

/* Runs both on random numbers, or on images of a set, and adds what they gave. */
ew_err ew_compare_random(struct ew_compared *c, uint64_t seed);
ew_err ew_compare_images(struct ew_compared *c, const struct ew_loader_opts *set, int64_t most);

/* One network on `input` (.npy or .pb) against what another program gave for it: `saved` is a file
 * with the first output, or a folder with NAME.npy for each value ('_' for '/').  Tensors of four
 * and more dimensions are [N, C, ...] in the files.  Release with close, also after a failure. */
ew_err ew_compare_saved(const char *network, const char *saved, const char *input,
                        const struct ew_compare_how *how, struct ew_compared *out);

/* Signal to noise in dB; 200 where nothing differs. */
double ew_agreement_db(const struct ew_agreement *a);

#endif
