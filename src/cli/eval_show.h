/* SPDX-License-Identifier: Apache-2.0 */
/* What `edgewise eval` shows and writes: scores by class, the confusion matrix,
 * predictions of samples and the worst mistakes. */
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
    int64_t top_classes; /* rows of tables on a terminal; 0: all */
};

ew_err ew_eval_print(const struct ew_eval_report *r);
ew_err ew_eval_print_json(const struct ew_eval_report *r);

/* The matrix: text on standard output; CSV with the classes' names; a picture, darker where more
 * samples of a class (a row) were predicted as another (a column). */
ew_err ew_eval_write_csv(const struct ew_eval_report *r, const char *path);
ew_err ew_eval_write_png(const struct ew_eval_report *r, const char *path);

/* The name of a class, "-" where the data set has none of this number. */
const char *ew_eval_class(const struct ew_eval_report *r, int64_t k);

/* The share of samples whose class is among the five likeliest. */
double ew_eval_top(const struct ew_eval_report *r);

/* Needs the run's samples.  A line for each: its file or number, its class, the likeliest ones. */
ew_err ew_eval_write_predictions(const struct ew_eval_report *r, const char *path);
/* Samples that were predicted wrongly, the surest first; release with free(). */
ew_err ew_eval_mistakes(const struct ew_eval_report *r, const struct ew_eval_sample ***out,
                        int64_t *n);
/* The mistakes that the network was surest of, as a picture with numbers and as a table. */
ew_err ew_eval_write_mistakes(const struct ew_eval_report *r, const char *path);
ew_err ew_eval_print_mistakes(const struct ew_eval_report *r);

#endif
