/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver operating characteristic of an anomaly score. */
#ifndef EW_TRAIN_ROC_H
#define EW_TRAIN_ROC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct ew_roc_sample {
    double score; /* higher: more anomalous */
    bool anomaly;
};

/* Operating point: samples of at least this score are classified as anomalies. */
struct ew_roc_point {
    double threshold;
    double found;        /* true positive rate */
    double false_alarms; /* false positive rate */
};

struct ew_roc {
    struct ew_roc_point *points; /* by decreasing threshold, from (0, 0) to (1, 1) */
    int64_t n;
    int64_t anomalies, normal;
    double area;               /* under the curve; ties count half */
    double area_error;         /* standard error (Hanley and McNeil, Radiology 143, 1982) */
    struct ew_roc_point best;  /* largest found - false_alarms (Youden's J) */
    struct ew_roc_point quiet; /* highest true positive rate within the given false positive rate */
};

/* Sorts the samples.  Fails unless both classes occur.  Free with fini. */
ew_err ew_roc_init(struct ew_roc_sample *samples, int64_t n, double false_alarms,
                   struct ew_roc *out);
void ew_roc_fini(struct ew_roc *r);

#endif
