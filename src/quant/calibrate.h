/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration: the ranges that a network's values take over real inputs.
 *
 *   ew_calibrator_new(g, values, n, &opts, &c);
 *   for (pass = 0; pass < ew_calibrator_passes(c); pass++) {
 *       ew_calibrator_start(c, pass);
 *       for each batch:  ew_calibrator_feed(c, images, n_images);
 *   }
 *   ew_calibrator_range(c, i, &range);
 *
 * The first pass finds extremes and means; the methods that clip outliers need a second one over
 * the same inputs, whose histograms then have the right width from the start. */
#ifndef EW_QUANT_CALIBRATE_H
#define EW_QUANT_CALIBRATE_H

#include "backend/backend.h"
#include "graph/graph.h"

/* clang-format off */
/* Inputs of the graph keep all that was seen, whatever the method. */
#define EW_CALIBRATE_MAP(X)                                                                        \
    X(MINMAX,     "minmax")     /* all that was seen */                                            \
    X(PERCENTILE, "percentile") /* all but the largest magnitudes */                               \
    X(ENTROPY,    "entropy")    /* the clip that loses least information (Kullback-Leibler) */
/* clang-format on */

enum ew_calibrate_method {
#define EW_CALIBRATE_ENUM(id, name) EW_CALIBRATE_##id,
    EW_CALIBRATE_MAP(EW_CALIBRATE_ENUM)
#undef EW_CALIBRATE_ENUM
        EW_CALIBRATE_N
};

/* The names, NULL-terminated: the `choices` of an option. */
extern const char *const ew_calibrate_names[];

struct ew_calibrate_opts {
    enum ew_calibrate_method method;
    double percentile; /* of magnitudes that are kept: 99.99; PERCENTILE alone */
    bool positions;    /* binary points of power-of-two quantisation are wanted too */
    struct ew_backend_opts backend;
};

struct ew_value_range {
    float lo, hi;           /* to be represented; lo <= hi */
    float seen_lo, seen_hi; /* extremes */
    int position;           /* of the binary point: compress/pow2.h; where it was asked for */
    int64_t count;          /* elements seen */
    int64_t channels;       /* of the last axis */
    const float *mean;      /* by channel; the calibrator's */
    const float *peak;      /* largest magnitude by channel; the calibrator's */
};

struct ew_calibrator;

/* Observes `values` (float32, not constant) of an inference graph with one input, at the graph's
 * batch.  The graph is borrowed until free. */
ew_err ew_calibrator_new(const struct ew_graph *g, const int *values, int n,
                         const struct ew_calibrate_opts *o, struct ew_calibrator **out);
void ew_calibrator_free(struct ew_calibrator *c); /* NULL is fine */

int ew_calibrator_passes(const struct ew_calibrator *c);
void ew_calibrator_start(struct ew_calibrator *c, int pass);

/* Runs n images (1 to the graph's batch) laid out as the input.  Fails with EW_ERR_FORMAT, naming
 * the value, where one is not finite. */
ew_err ew_calibrator_feed(struct ew_calibrator *c, const float *images, int64_t n);

/* The range of values[i].  Fails where nothing was fed. */
ew_err ew_calibrator_range(const struct ew_calibrator *c, int i, struct ew_value_range *out);

#endif
