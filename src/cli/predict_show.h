/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions, measurement plans and validations as text, CSV and JSON. */
#ifndef EW_CLI_PREDICT_SHOW_H
#define EW_CLI_PREDICT_SHOW_H

#include "advise/design.h"
#include "advise/store/mode_check.h"
#include "base/json.h"

/* Predictions of one workload. */
struct ew_predicted {
    const char *workload;
    const char *board; /* "": not known */
    unsigned lacks;    /* absent settings of its modes, EW_NO_... */
    int measured;
    bool simulated; /* predicted from simulated measurements */
    const struct ew_mode *modes;
    const struct ew_prediction *v;
    const bool *front; /* Pareto-optimal in time and energy (without power: the fastest) */
    int n;
};

ew_err ew_predicted_text(const struct ew_predicted *p);
void ew_predicted_json(struct ew_json *j, const struct ew_predicted *p);
void ew_predicted_csv_head(FILE *out, unsigned lacks);
void ew_predicted_csv(FILE *out, const struct ew_predicted *p);

/* Modes to measure, the most informative first. */
struct ew_planned {
    unsigned lacks; /* absent settings of the modes, EW_NO_... */
    const struct ew_mode *modes;
    const struct ew_design_step *steps;
    int n;
};

ew_err ew_plan_text(const struct ew_planned *p);
void ew_plan_json(struct ew_json *j, const struct ew_planned *p);
void ew_plan_csv(FILE *out, const struct ew_planned *p);

/* Writes a mode's settings as members; null for absent ones. */
void ew_json_mode(struct ew_json *j, const struct ew_mode *m, unsigned lacks);
/* Write the column titles and the cells of a mode as CSV. */
void ew_mode_csv_head(FILE *out, unsigned lacks);
void ew_mode_csv(FILE *out, const struct ew_mode *m, unsigned lacks);

/* Results of a validation. */
ew_err ew_check_text(const struct ew_check_row *rows, int n);
void ew_check_json(struct ew_json *j, const struct ew_check_row *rows, int n);

#endif
