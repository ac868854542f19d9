/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration: ranges of a network's values over real inputs.
 *
 *   ew_calibrator_new(g, values, n, &opts, &c);
 *   for (pass = 0; pass < ew_calibrator_passes(c); pass++) {
 *       ew_calibrator_start(c, pass);
 *       for each batch:  ew_calibrator_feed(c, images, n_images);
 *   }
 *   ew_calibrator_range(c, i, &range);
 *
 * The first pass finds extremes and means; methods that clip outliers need a second pass over the
 * same inputs, so that their histograms have the right width from the start. */
#ifndef EW_QUANT_CALIBRATE_H
#define EW_QUANT_CALIBRATE_H

#include "backend/backend.h"
#include "graph/graph.h"

/* clang-format off */
/* Graph inputs are never clipped, whatever the method. */
#define EW_CALIBRATE_MAP(X)                                                                        \
    X(MINMAX,     "minmax")     /* the extremes */                                            \
    X(PERCENTILE, "percentile") /* clips the largest magnitudes */                               \
    X(ENTROPY,    "entropy")    /* the clip with the least Kullback-Leibler divergence */
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
    double percentile; /* PERCENTILE: of magnitudes that are kept, e.g. 99.99 */
    bool positions;    /* also choose positions of power-of-two quantisation */
    struct ew_backend_opts backend;
};

struct ew_value_range {
    float lo, hi;           /* range to represent; lo <= hi */
    float seen_lo, seen_hi; /* extremes */
    int position;           /* opts.positions: of the binary point (compress/pow2.h) */
    int64_t count;          /* elements seen */
    int64_t channels;       /* of the last axis */
    const float *mean;      /* by channel; the calibrator's */
    const float *peak;      /* peak magnitude by channel; borrowed */
};

struct ew_calibrator;

/* Observes `values` (float32, not constant) of an inference graph with one input, at the graph's
 * batch.  The graph is borrowed until free. */
ew_err ew_calibrator_new(const struct ew_graph *g, const int *values, int n,
                         const struct ew_calibrate_opts *o, struct ew_calibrator **out);
void ew_calibrator_free(struct ew_calibrator *c); /* NULL is fine */

int ew_calibrator_passes(const struct ew_calibrator *c);
void ew_calibrator_start(struct ew_calibrator *c, int pass);

/* Runs n images (1 to the graph's batch) in the input's layout.  EW_ERR_FORMAT, naming the value,
 * if one is not finite. */
ew_err ew_calibrator_feed(struct ew_calibrator *c, const float *images, int64_t n);

/* The range of values[i].  Fails if nothing was fed. */
ew_err ew_calibrator_range(const struct ew_calibrator *c, int i, struct ew_value_range *out);

#endif
