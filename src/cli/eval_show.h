/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `edgewise eval`: scores by class, the confusion matrix, predictions of samples and the
 * worst mistakes. */
#ifndef EW_CLI_EVAL_SHOW_H
#define EW_CLI_EVAL_SHOW_H

#include "data/data.h"
#include "measure/eval_run.h"

struct ew_eval_report {
    const char *network;
    const struct ew_dataset *data;
    enum ew_split split;
    const struct ew_eval_run *run;
    double seconds;
    int64_t top_classes;        /* rows of tables on a terminal; 0: all */
    const char *const *classes; /* names */
    int64_t n_classes;
};

ew_err ew_eval_print(const struct ew_eval_report *r);
ew_err ew_eval_print_json(const struct ew_eval_report *r);

/* The confusion matrix as CSV with class names, and as a picture, darker where more samples of a
 * true class (row) were predicted as another (column). */
ew_err ew_eval_write_csv(const struct ew_eval_report *r, const char *path);
ew_err ew_eval_write_png(const struct ew_eval_report *r, const char *path);

/* The name of class k; "-" if it is none. */
const char *ew_eval_class(const struct ew_eval_report *r, int64_t k);

/* Top-5 accuracy. */
double ew_eval_top(const struct ew_eval_report *r);

/* Writes one line per sample: its file or number, its class, the top predictions.  Needs the run's
 * samples. */
ew_err ew_eval_write_predictions(const struct ew_eval_report *r, const char *path);
/* The misclassified samples, by decreasing confidence; release with free(). */
ew_err ew_eval_mistakes(const struct ew_eval_report *r, const struct ew_eval_sample ***out,
                        int64_t *n);
/* The misclassified samples with the highest confidence: a numbered picture, and a table. */
ew_err ew_eval_write_mistakes(const struct ew_eval_report *r, const char *path);
ew_err ew_eval_print_mistakes(const struct ew_eval_report *r);

#endif
