/* SPDX-License-Identifier: Apache-2.0 */
/* Terminal output of a study on many machines. */
#ifndef EW_CLI_STUDY_FLEET_H
#define EW_CLI_STUDY_FLEET_H

#include "study/fleet_run.h"

/* Runs the study, prints events to standard error, and the results of the machines side by side. */
ew_err ew_study_on_fleet(const struct ew_study *study, const struct ew_fleet_opts *o, bool json);

#endif
