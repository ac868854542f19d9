/* SPDX-License-Identifier: Apache-2.0 */
/* `edgewise eval` of an autoencoder: reconstruction errors by class, and how well they separate
 * anomalies from normal samples. */
#ifndef EW_CLI_EVAL_ANOMALY_H
#define EW_CLI_EVAL_ANOMALY_H

#include "cli/eval_show.h"
#include "train/roc.h"

struct ew_anomaly_opts {
    const char *classes; /* "a,b": the anomalous classes; NULL: errors only */
    double false_alarms; /* false-alarm rate of the second threshold */
};

/* The ROC curve of the run's errors; out->n is 0 without anomalous classes.  Release with fini. */
ew_err ew_anomaly_curve(const struct ew_eval_report *r, const struct ew_anomaly_opts *o,
                        struct ew_roc *out);

ew_err ew_anomaly_print(const struct ew_eval_report *r, const struct ew_roc *roc);
ew_err ew_anomaly_print_json(const struct ew_eval_report *r, const struct ew_roc *roc);
/* Writes the curve's points as CSV, and its plot. */
ew_err ew_anomaly_write_csv(const struct ew_roc *roc, const char *path);
ew_err ew_anomaly_write_png(const struct ew_roc *roc, const char *path);
/* Writes the class and error of each sample as CSV. */
ew_err ew_anomaly_write_errors(const struct ew_eval_report *r, const char *path);

#endif
