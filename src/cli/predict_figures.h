/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of predictions, as a page of the report's kind. */
#ifndef EW_CLI_PREDICT_FIGURES_H
#define EW_CLI_PREDICT_FIGURES_H

#include "advise/measured.h"
#include "advise/trial.h"
#include "cli/predict_show.h"
#include "report/figure.h"

/* What is drawn of one workload. */
struct ew_predict_picture {
    const struct ew_series_of_modes *measured;
    const struct ew_trial *left_out;      /* predicted without having been seen */
    const struct ew_predicted *predicted; /* all modes; NULL: no picture of the front */
};

/* Adds predicted against measured, error by mode, calibration, and the Pareto front with its band.
 * What it is given must outlive the figures. */
ew_err ew_predict_figures_add(struct ew_figures *f, const struct ew_predict_picture *p);

/* Writes the page. */
ew_err ew_predict_figures_write(const struct ew_figures *f, const char *path);

#endif
