/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the quantiser's files. */
#ifndef EW_QUANT_QUANT_IMPL_H
#define EW_QUANT_QUANT_IMPL_H

#include "compress/quantize.h"
#include "quant/quant_run.h"

#define EW_QUANT_BATCH 8 /* batch of calibration and probe */

/* Probe images, and the float network's scores for them. */
struct ew_quant_probe {
    float *images, *scores;
    int64_t n, room;        /* images */
    int64_t image, classes; /* floats per image, scores per image */
};

/* A float graph ready for quantisation, with statistics of its values. */
struct ew_quant_variant {
    struct ew_graph *g;
    struct ew_graph *parent; /* owner of constants that g borrows, if owned by this variant; or
                              * NULL */
    const struct ew_quant_variant *uncorrected; /* the same graph with uncorrected biases; NULL: not
                                                 * corrected */
    struct ew_range *ranges;                    /* by value; lo > hi: unknown */
    int *positions;                             /* by value: binary points, with scheme pow2 */
    const float **means, **peaks;               /* by value; NULL: unknown */
    struct ew_arena arena;
    int64_t images;
};

void ew_quant_variant_fini(struct ew_quant_variant *v);

/* Clones and prepares `g`, and measures ranges over the calibration images. */
ew_err ew_quant_observe(const struct ew_quant_job *job, const struct ew_graph *g, const char *what,
                        struct ew_quant_variant *out);

/* Fills the probe with the first images of the calibration set, and the network's scores. */
ew_err ew_quant_probe_fill(const struct ew_quant_job *job, struct ew_quant_probe *p);
void ew_quant_probe_fini(struct ew_quant_probe *p);

/* SQNR of a network's scores against the probe's, in dB; 200 if equal. */
ew_err ew_quant_probe_sqnr(const struct ew_quant_probe *p, const struct ew_graph *g, int threads,
                           double *db);

/* Builds the variant in QDQ form.  Nodes with keep[k] (NULL: none) stay float32, with uncorrected
 * biases, since their weights are not rounded. */
ew_err ew_quant_build(const struct ew_quant_job *job, const struct ew_quant_variant *v,
                      const bool *keep, struct ew_graph **out);

/* Times the steps of each named layer, and all steps, at batch 1. */
ew_err ew_quant_time(const struct ew_graph *g, int threads, const struct ew_quant_layer *layers,
                     int n, double *layer_s, double *all_s);

/* Copies constants that the graph borrows. */
ew_err ew_quant_own_weights(struct ew_graph *g);

/* The node of this name, or -1. */
int ew_quant_node_of(const struct ew_graph *g, const char *name);

/* True for nodes with weights. */
bool ew_quant_is_layer(const struct ew_graph *g, int node);

#endif
