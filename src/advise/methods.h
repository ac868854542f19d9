/* SPDX-License-Identifier: Apache-2.0 */
/* Other prediction methods, for comparison with predictor.h on the same measurements. */
#ifndef EW_ADVISE_METHODS_H
#define EW_ADVISE_METHODS_H

#include "advise/predictor.h"

/*   physical: laws of time and power with priors, and a Gaussian process for the residuals
 *   process:  a Gaussian process over logarithms of cores and clocks, and no laws
 *   linear:   linear regression of time on cores and clocks, of energy on those and the time
 * (TRAIN)
 */
#define EW_METHOD_MAP(X) X(PHYSICAL, "physical") X(PROCESS, "process") X(LINEAR, "linear")

enum ew_method {
#define EW_METHOD_ENUM(id, name) EW_METHOD_##id,
    EW_METHOD_MAP(EW_METHOD_ENUM)
#undef EW_METHOD_ENUM
        EW_METHODS
};

const char *ew_method_name(enum ew_method m);

/* Fits to the data and predicts n modes.  Linear regression has no intervals (nan). */
ew_err ew_method_predict(enum ew_method m, const struct ew_predict_data *d,
                         const struct ew_mode *modes, int n, struct ew_prediction *out);

/* The four rows whose linear regression has the lowest sum of root mean square errors over all
 * rows of several workloads (TRAIN's search); `time` has a row of n for each workload. */
ew_err ew_method_best_four(const struct ew_mode *modes, const double *const *time, int n_workloads,
                           int n, int four[4]);

#endif
