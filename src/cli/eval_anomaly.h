/* SPDX-License-Identifier: Apache-2.0 */
/* `edgewise eval` of a network that gives back its input: errors by class, and how well the error
 * tells anomalies from the rest. */
#ifndef EW_CLI_EVAL_ANOMALY_H
#define EW_CLI_EVAL_ANOMALY_H

#include "cli/eval_show.h"
#include "train/roc.h"

struct ew_anomaly_opts {
    const char *classes; /* "a,b": those that are anomalies; NULL: errors alone */
    double false_alarms; /* share that the second threshold keeps to */
};

/* The curve of the run's errors; out->n is 0 where no classes are named.  Release with ew_roc_fini.
 */
ew_err ew_anomaly_curve(const struct ew_eval_report *r, const struct ew_anomaly_opts *o,
                        struct ew_roc *out);

ew_err ew_anomaly_print(const struct ew_eval_report *r, const struct ew_roc *roc);
ew_err ew_anomaly_print_json(const struct ew_eval_report *r, const struct ew_roc *roc);
/* The curve: its points; a picture of it. */
ew_err ew_anomaly_write_csv(const struct ew_roc *roc, const char *path);
ew_err ew_anomaly_write_png(const struct ew_roc *roc, const char *path);
/* Each sample's class and error. */
ew_err ew_anomaly_write_errors(const struct ew_eval_report *r, const char *path);

#endif
