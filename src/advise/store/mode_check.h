/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of predictions of power modes: holds out measured modes, predicts them by one method
 * or all, and compares. */
#ifndef EW_ADVISE_STORE_MODE_CHECK_H
#define EW_ADVISE_STORE_MODE_CHECK_H

#include "advise/store/advice_source.h"

struct ew_mode_check {
    const char *workload; /* NULL: all */
    int count;    /* modes to fit to; 0: 10, and 50 where there are enough, else all but one */
    bool compare; /* all methods, also on the four modes that linear regression does best on */
};

/* A workload, a method, how well it did. */
struct ew_check_row {
    const char *workload, *method, *split;
    struct ew_holdout_errors errors;
};

/* *rows is the heap's, also after a failure: release with free(). */
ew_err ew_mode_check(struct ew_advice_source *s, const struct ew_mode_check *o,
                     struct ew_check_row **rows, int *n);

/* Whether a fit to n modes holds out enough others for a validation. */
bool ew_mode_check_leaves_enough(const struct ew_mode_series *m, int n);

#endif
