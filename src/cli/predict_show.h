/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions, plans and checks as text, CSV and JSON. */
#ifndef EW_CLI_PREDICT_SHOW_H
#define EW_CLI_PREDICT_SHOW_H

#include "advise/design.h"
#include "advise/store/mode_check.h"
#include "base/json.h"

/* One workload's predictions. */
struct ew_predicted {
    const char *workload;
    const char *board; /* "": not known */
    unsigned lacks;    /* settings that its modes do not have, EW_NO_... */
    int measured;
    bool simulated; /* what it was predicted from is a simulation */
    const struct ew_mode *modes;
    const struct ew_prediction *v;
    const bool
        *front; /* not beaten in time and energy (in time and power's absence: the fastest) */
    int n;
};

ew_err ew_predicted_text(const struct ew_predicted *p);
void ew_predicted_json(struct ew_json *j, const struct ew_predicted *p);
void ew_predicted_csv_head(FILE *out, unsigned lacks);
void ew_predicted_csv(FILE *out, const struct ew_predicted *p);

/* Modes to measure, the most telling first. */
struct ew_planned {
    unsigned lacks; /* settings that they do not have, EW_NO_... */
    const struct ew_mode *modes;
    const struct ew_design_step *steps;
    int n;
};

ew_err ew_plan_text(const struct ew_planned *p);
void ew_plan_json(struct ew_json *j, const struct ew_planned *p);
void ew_plan_csv(FILE *out, const struct ew_planned *p);

/* A mode's settings as members; null where it does not have one. */
void ew_json_mode(struct ew_json *j, const struct ew_mode *m, unsigned lacks);
/* A mode's cells of a CSV file, and their titles. */
void ew_mode_csv_head(FILE *out, unsigned lacks);
void ew_mode_csv(FILE *out, const struct ew_mode *m, unsigned lacks);

/* Of a check. */
ew_err ew_check_text(const struct ew_check_row *rows, int n);
void ew_check_json(struct ew_json *j, const struct ew_check_row *rows, int n);

#endif
