/* SPDX-License-Identifier: Apache-2.0 */
/* What `edgewise eval` shows and writes: scores by class, and the confusion matrix. */
#ifndef EW_CLI_EVAL_SHOW_H
#define EW_CLI_EVAL_SHOW_H

#include "data/data.h"
#include "train/scores.h"

struct ew_eval_report {
    const char *network;
    const struct ew_dataset *data;
    const char *split;
    const struct ew_confusion *confusion;
    double seconds;
    int64_t bad;
    int64_t top_classes; /* rows of tables on a terminal; 0: all */
};

ew_err ew_eval_print(const struct ew_eval_report *r);
ew_err ew_eval_print_json(const struct ew_eval_report *r);

/* The matrix: text on standard output; CSV with the classes' names; a picture, darker where more
 * samples of a class (a row) were taken for another (a column). */
ew_err ew_eval_print_matrix(const struct ew_eval_report *r);
ew_err ew_eval_write_csv(const struct ew_eval_report *r, const char *path);
ew_err ew_eval_write_png(const struct ew_eval_report *r, const char *path);

#endif
