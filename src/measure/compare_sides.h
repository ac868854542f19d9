/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two networks on the same inputs, or one with tensors saved by another program, value by
 * value. */
#ifndef EW_MEASURE_COMPARE_SIDES_H
#define EW_MEASURE_COMPARE_SIDES_H

#include "measure/classifier.h"
#include "plan/plan.h"

/* One value of both networks, over all inputs. */
struct ew_agreement {
    const char *name, *op; /* op: of the first network */
    struct ew_shape shape;
    double signal, noise; /* sums of squares: of the first network's value, of the difference */
    double worst;         /* largest difference */
    double largest;       /* largest magnitude in the first network */
    int a, b;             /* output indices of the plans */
    int node;             /* its producer in the first network */
    bool output;          /* an output of the network */
};

struct ew_compared {
    struct ew_arena arena;
    struct ew_classifier side[2];
    struct ew_graph *graph[2];
    struct ew_plan *plan[2];
    bool *last;             /* with saved values, by value of graph[0]: see file_layout.h */
    struct ew_agreement *v; /* in execution order of the first network */
    int n;
    int64_t inputs;   /* inputs run so far */
    int64_t same_top; /* inputs with the same argmax of the first output; -1: that output was not
                         compared */
};

struct ew_compare_values_opts {
    bool layers; /* all values with equal names, else outputs only */
    struct ew_image_opts images;
    int threads;
};

/* Opens both networks.  Release with close, also after a failure. */
ew_err ew_compare_open(const char *a, const char *b, const struct ew_compare_values_opts *how,
                       struct ew_compared *out);
void ew_compare_close(struct ew_compared *c);

/* Runs both on random numbers, or on images of a set, and accumulates the differences. */
ew_err ew_compare_random(struct ew_compared *c, uint64_t seed);
ew_err ew_compare_images(struct ew_compared *c, const struct ew_loader_opts *set, int64_t most);

/* Compares a network on `input` (.npy or .pb) with another program's results: `saved` is a file
 * with the first output, or a folder with NAME.npy for each value ('_' for '/').  Images are
 * [N, C, ...] in the files.  Release with close, also after a failure. */
ew_err ew_compare_saved(const char *network, const char *saved, const char *input,
                        const struct ew_compare_values_opts *how, struct ew_compared *out);

/* Writes every float value of a network run on `input` as FOLDER/NAME.npy, in the layout that
 * ew_compare_saved reads; out->n is their number.  The folder may exist.  Release as above. */
ew_err ew_compare_save(const char *network, const char *folder, const char *input,
                       const struct ew_compare_values_opts *how, struct ew_compared *out);

/* Signal-to-noise ratio in dB; 200 if nothing differs. */
double ew_agreement_db(const struct ew_agreement *a);

#endif
