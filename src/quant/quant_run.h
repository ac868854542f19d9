/* SPDX-License-Identifier: Apache-2.0 */
/* Post-training quantisation:
 *
 *   calibrate      ranges over real images (quant/calibrate.h)
 *   remedies       none, equalisation, bias correction, both: whichever has the best SQNR
 *   layers         each quantised alone for its SQNR, and timed in both precisions
 *   gate           layers with too low an SQNR stay float32, and slow ones if the network gains
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
    /* With POW2, for accelerators without floating point, all layers are quantised: they are rated,
     * but `time`, min_sqnr_db and max_drop have no effect. */
    enum ew_quantize_scheme scheme;
    enum ew_calibrate_method method;
    double percentile;  /* of EW_CALIBRATE_PERCENTILE */
    bool is_signed;     /* activations are int8, else uint8 */
    bool equalize;      /* may be tried */
    bool correct_bias;  /* may be tried */
    bool time;          /* keep groups of layers in float32 if the network is then faster */
    double min_sqnr_db; /* a layer whose quantisation alone gives a lower SQNR stays float32 */
    double max_drop;    /* of accuracy, in percentage points; with an evaluation */
    int threads;
};

struct ew_quant_job {
    const struct ew_graph *net; /* from images [N, H, W, C] to scores [N, classes]; outlives the
                                 * result */
    struct ew_loader_opts calibration;       /* h, w, c, order and augmentation are set here */
    const struct ew_loader_opts *evaluation; /* NULL: none */
    struct ew_quant_opts opts;
    FILE *talk; /* progress; NULL: silent */
};

struct ew_quant_layer {
    const char *name, *op;
    float lo, hi;           /* of its output, as quantised */
    double sqnr_db;         /* of the network's scores with this layer alone quantised */
    double float_s, int8_s; /* time at batch 1; negative: not measured */
    bool is_float;          /* stays float32 */
    char reason[96];        /* why it is float32, or int8 although slower; "": no reason needed */
};

/* A remedy that was tried. */
struct ew_quant_remedy {
    bool equalized, corrected;
    double sqnr_db; /* of the scores, with all layers quantised */
};

#define EW_QUANT_REMEDIES 4

struct ew_quant_result {
    struct ew_graph *graph; /* QDQ form */
    struct ew_arena arena;  /* owns the lists */
    struct ew_quant_layer *layers;
    int n_layers, n_float;
    struct ew_quant_remedy remedies[EW_QUANT_REMEDIES];
    int n_remedies, remedy;          /* remedy: index of the chosen one */
    int64_t calibrated;              /* images */
    double sqnr_db;                  /* of the scores of the probe images */
    int64_t probed;                  /* images */
    double float_s, int8_s;          /* time of the network at batch 1 */
    int64_t float_bytes, int8_bytes; /* of weights */
    bool evaluated;
    struct ew_scores before, after;
    bool drop_met; /* or no limit was given */
};

/* Free with ew_quant_result_fini, also after a failure. */
ew_err ew_quant_run(const struct ew_quant_job *job, struct ew_quant_result *out);
void ew_quant_result_fini(struct ew_quant_result *r);

#endif
