/* SPDX-License-Identifier: Apache-2.0 */
/* Charts of predictions on a page like those of the reports. */
#ifndef EW_CLI_PREDICT_FIGURES_H
#define EW_CLI_PREDICT_FIGURES_H

#include "advise/holdout.h"
#include "advise/measured.h"
#include "cli/predict_show.h"
#include "report/figure.h"

/* Data for the charts of one workload. */
struct ew_predict_picture {
    const struct ew_mode_series *measured;
    const struct ew_holdout *left_out;    /* held-out predictions */
    const struct ew_predicted *predicted; /* all modes; NULL: no chart of the front */
};

/* Adds the charts predicted against measured, error by mode, calibration, and the Pareto front with
 * its interval.  The arguments must outlive the figures. */
ew_err ew_predict_figures_add(struct ew_figures *f, const struct ew_predict_picture *p);

/* Writes the HTML page. */
ew_err ew_predict_figures_write(const struct ew_figures *f, const char *path);

#endif
