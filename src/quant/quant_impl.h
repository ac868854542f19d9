/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of quantising, shared by the files of this folder. */
#ifndef EW_QUANT_QUANT_IMPL_H
#define EW_QUANT_QUANT_IMPL_H

#include "compress/quantize.h"
#include "quant/quant_run.h"

#define EW_QUANT_BATCH 8 /* images at a time, in calibration and probes */

/* Images that stay in memory, and the float network's scores for them. */
struct ew_quant_probe {
    float *images, *scores;
    int64_t n, room;        /* images */
    int64_t image, classes; /* floats of an image, of its scores */
};

/* A float graph that is ready for quantising, with what was seen of its values. */
struct ew_quant_variant {
    struct ew_graph *g;
    struct ew_graph
        *parent; /* whose constants g borrows, where it is this variant's own; or NULL */
    const struct ew_quant_variant
        *uncorrected;             /* the same with its own biases; NULL: it has them */
    struct ew_range *ranges;      /* by value; lo > hi: unknown */
    int *positions;               /* by value: of the binary point, where the scheme is pow2 */
    const float **means, **peaks; /* by value; NULL: unknown */
    struct ew_arena arena;
    int64_t images;
};

void ew_quant_variant_fini(struct ew_quant_variant *v);

/* A clone of `g` as it is quantised, with ranges over the calibration images. */
ew_err ew_quant_observe(const struct ew_quant_job *job, const struct ew_graph *g, const char *what,
                        struct ew_quant_variant *out);

/* The first images of the calibration set, and what the network says of them. */
ew_err ew_quant_probe_fill(const struct ew_quant_job *job, struct ew_quant_probe *p);
void ew_quant_probe_fini(struct ew_quant_probe *p);

/* Signal to noise of a network's scores against the probe's, in dB; 200 where nothing differs. */
ew_err ew_quant_probe_sqnr(const struct ew_quant_probe *p, const struct ew_graph *g, int threads,
                           double *db);

/* The variant in QDQ form; nodes with keep[k] stay float32 (NULL: none), with biases that are not
 * corrected: their weights are not rounded. */
ew_err ew_quant_build(const struct ew_quant_job *job, const struct ew_quant_variant *v,
                      const bool *keep, struct ew_graph **out);

/* Seconds of the steps of each named layer, and of all, at batch 1. */
ew_err ew_quant_time(const struct ew_graph *g, int threads, const struct ew_quant_layer *layers,
                     int n, double *layer_s, double *all_s);

/* Whatever a graph borrows of others becomes its own. */
ew_err ew_quant_own_weights(struct ew_graph *g);

/* The node of this name, or -1. */
int ew_quant_node_of(const struct ew_graph *g, const char *name);

/* True for nodes that have weights. */
bool ew_quant_is_layer(const struct ew_graph *g, int node);

#endif
