/* SPDX-License-Identifier: Apache-2.0 */
/* How well a score tells anomalies from what is normal: the receiver operating characteristic. */
#ifndef EW_TRAIN_ROC_H
#define EW_TRAIN_ROC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct ew_roc_sample {
    double score; /* the higher, the more of an anomaly */
    bool anomaly;
};

/* Samples of at least this score are called anomalies. */
struct ew_roc_point {
    double threshold;
    double found;        /* share of the anomalies that are called so: true positives */
    double false_alarms; /* share of normal samples that are: false positives */
};

struct ew_roc {
    struct ew_roc_point *points; /* by falling threshold, from (0, 0) to (1, 1) */
    int64_t n;
    int64_t anomalies, normal;
    double area;               /* below the curve; equal scores count half */
    double area_error;         /* standard error (Hanley and McNeil, Radiology 143, 1982) */
    struct ew_roc_point best;  /* where found - false_alarms is largest (Youden) */
    struct ew_roc_point quiet; /* where most is found with at most the false alarms asked for */
};

/* Sorts the samples.  Fails without anomalies or without normal ones.  Release with fini. */
ew_err ew_roc_init(struct ew_roc_sample *samples, int64_t n, double false_alarms,
                   struct ew_roc *out);
void ew_roc_fini(struct ew_roc *r);

#endif
