/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring power modes until the others can be predicted well enough. */
#ifndef EW_CLI_STUDY_UNTIL_H
#define EW_CLI_STUDY_UNTIL_H

#include "store/store.h"
#include "study/study.h"

/* Mean errors of untried modes, as shares; 0: not asked for. */
struct ew_until {
    double time, power;
};

/* "time=5%,power=4%"; NULL: nothing is asked for. */
ew_err ew_until_parse(const char *text, struct ew_until *out);

/* Mean absolute error over standard deviation, of a normal. */
#define EW_MEAN_OF_SD 0.8

bool ew_until_reached(const struct ew_until *u, double time_sd, double power_sd);

/* How well what is in the store predicts the other modes of the job that was done last. */
struct ew_until_state {
    int measured;       /* modes; fewer than five say nothing */
    double time, power; /* expected mean errors, as shares; nan: not known */
    bool reached;
};

ew_err ew_until_look(const struct ew_until *u, struct ew_store *store, const char *db,
                     const struct ew_study_job *job, struct ew_until_state *out);

/* Whether two jobs differ in nothing but the power mode. */
bool ew_until_same_sweep(const struct ew_study_job *a, const struct ew_study_job *b);

#endif
