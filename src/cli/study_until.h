/* SPDX-License-Identifier: Apache-2.0 */
/* Stops measuring power modes when the others can be predicted well enough. */
#ifndef EW_CLI_STUDY_UNTIL_H
#define EW_CLI_STUDY_UNTIL_H

#include "store/store.h"
#include "study/study.h"

/* Limits of the mean relative error of untried modes; 0: none. */
struct ew_until {
    double time, power;
};

/* Parses "time=5%,power=4%"; NULL: no limit. */
ew_err ew_until_parse(const char *text, struct ew_until *out);

/* Mean absolute error over standard deviation of a normal distribution: sqrt(2 / pi). */
#define EW_MEAN_OF_SD 0.8

bool ew_until_reached(const struct ew_until *u, double time_sd, double power_sd);

/* How well the store predicts the other modes of the last job's sweep. */
struct ew_until_state {
    int measured;       /* measured modes; at least five are needed */
    double time, power; /* expected mean relative errors; nan: not known */
    bool reached;
};

ew_err ew_until_look(const struct ew_until *u, struct ew_store *store, const char *db,
                     const struct ew_study_job *job, struct ew_until_state *out);

/* Whether two jobs differ only in the power mode. */
bool ew_until_same_sweep(const struct ew_study_job *a, const struct ew_study_job *b);

#endif
