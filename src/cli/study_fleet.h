/* SPDX-License-Identifier: Apache-2.0 */
/* A study on many machines, on the terminal. */
#ifndef EW_CLI_STUDY_FLEET_H
#define EW_CLI_STUDY_FLEET_H

#include "study/fleet_run.h"

/* Runs it, a line for each thing that happens on standard error, and shows the machines' figures
 * side by side. */
ew_err ew_study_on_fleet(const struct ew_study *study, const struct ew_fleet_opts *o, bool json);

#endif
