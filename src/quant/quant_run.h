/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising a trained network: calibrate, try the remedies, decide layer by layer, prove it.
 *
 *   calibrate      ranges over real images (quant/calibrate.h)
 *   remedies       as it is, equalised, biases corrected, both: the one whose scores stay closest
 *   layers         each quantised alone: what it costs; timed in both precisions
 *   gate           layers that cost too much stay float32, and slower ones where the network as a
 *                  whole gains by it
 *   evaluation     accuracy in both precisions; more layers stay float32 until the drop is allowed
 *
 * Inserting quantisers is compress/quantize.h's. */
#ifndef EW_QUANT_QUANT_RUN_H
#define EW_QUANT_QUANT_RUN_H

#include "base/progress.h"
#include "compress/quantize.h"
#include "data/loader.h"
#include "graph/graph.h"
#include "quant/calibrate.h"
#include "train/scores.h"

struct ew_quant_opts {
    /* With POW2, for accelerators without floating point, no layer stays float32: layers are rated,
     * but time, min_sqnr_db and max_drop decide nothing. */
    enum ew_quantize_scheme scheme;
    enum ew_calibrate_method method;
    double percentile;  /* of EW_CALIBRATE_PERCENTILE */
    bool is_signed;     /* activations are int8, else uint8 */
    bool equalize;      /* may be tried */
    bool correct_bias;  /* may be tried */
    bool time;          /* groups of layers stay float32 where the network is faster so */
    double min_sqnr_db; /* a layer that alone leaves the scores with less stays float32 */
    double max_drop;    /* of accuracy, in points; with an evaluation */
    int threads;
};

struct ew_quant_job {
    const struct ew_graph
        *net; /* images [N, H, W, C] to scores [N, classes]; outlives the result */
    struct ew_loader_opts calibration;       /* h, w, c, order and augmentation are set here */
    const struct ew_loader_opts *evaluation; /* NULL: none */
    struct ew_quant_opts opts;
    FILE *talk; /* for progress on a terminal; NULL: silent */
};

struct ew_quant_layer {
    const char *name, *op;
    float lo, hi;           /* of its output, as represented */
    double sqnr_db;         /* of the network's scores where it alone is quantised */
    double float_s, int8_s; /* a run at batch 1; negative: not measured */
    bool is_float;          /* it stays float32 */
    char reason[96];        /* for that; or why it is int8 although slower; "": none needed */
};

/* One remedy that was tried. */
struct ew_quant_remedy {
    bool equalized, corrected;
    double sqnr_db; /* of the scores, all layers quantised */
};

#define EW_QUANT_REMEDIES 4

struct ew_quant_result {
    struct ew_graph *graph; /* QDQ form */
    struct ew_arena arena;  /* of the rest */
    struct ew_quant_layer *layers;
    int n_layers, n_float;
    struct ew_quant_remedy remedies[EW_QUANT_REMEDIES];
    int n_remedies, remedy;          /* the one that was taken */
    int64_t calibrated;              /* images */
    double sqnr_db;                  /* of the scores, over the probe images */
    int64_t probed;                  /* images */
    double float_s, int8_s;          /* a run of the network at batch 1 */
    int64_t float_bytes, int8_bytes; /* of its weights */
    bool evaluated;
    struct ew_scores before, after;
    bool drop_met; /* or nothing was asked */
};

/* Release with ew_quant_result_fini, also after a failure. */
ew_err ew_quant_run(const struct ew_quant_job *job, struct ew_quant_result *out);
void ew_quant_result_fini(struct ew_quant_result *r);

#endif
