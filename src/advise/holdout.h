/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of predictions: measured modes are held out, predicted, and compared. */
#ifndef EW_ADVISE_HOLDOUT_H
#define EW_ADVISE_HOLDOUT_H

#include "advise/measured.h"
#include "advise/methods.h"

/* Held-out measurements and their predictions. */
struct ew_holdout {
    enum ew_method method;
    int fitted; /* modes that each prediction was made from */
    int n;
    int *row; /* of the workload, n */
    struct ew_prediction *predicted;
};

/* Errors in percent, coverage in shares; nan where there was nothing to compare. */
struct ew_holdout_errors {
    int fitted, tested;
    double time, power, energy; /* mean absolute error */
    double time_in50, time_in90, power_in50, power_in90, energy_in50, energy_in90;
};

/* The board that the measurements are from. */
struct ew_holdout_board {
    const char *name; /* profile; NULL: not known */
    struct ew_mode top;
};

/* What is fitted, and how. */
struct ew_holdout_setup {
    const struct ew_mode_series *series;
    const struct ew_holdout_board *board;
    enum ew_method method;
};

/* Fits to the given rows and predicts all others. */
ew_err ew_holdout_split(struct ew_arena *a, const struct ew_holdout_setup *setup, const int *rows,
                        int n_rows, struct ew_holdout *out);

/* Leaves out each row in turn. */
ew_err ew_holdout_leave_one_out(struct ew_arena *a, const struct ew_holdout_setup *setup,
                                struct ew_holdout *out);

void ew_holdout_errors(const struct ew_mode_series *s, const struct ew_holdout *t,
                       struct ew_holdout_errors *out);

/* The rows that design.h would measure first. */
ew_err ew_holdout_design(struct ew_arena *a, const struct ew_mode_series *s, int n, int **rows,
                         int *n_rows);

#endif
