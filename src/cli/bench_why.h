/* SPDX-License-Identifier: Apache-2.0 */
/* Why a step of a plan has its kernel. */
#ifndef EW_CLI_BENCH_WHY_H
#define EW_CLI_BENCH_WHY_H

#include "plan/plan.h"

/* Prints the candidates of every step named `step`, or of the step with this number (counted from
 * 1): estimates, the condition that excludes each and, if the plan was tuned, times. */
ew_err ew_bench_why(const struct ew_plan *p, const char *step, bool tuned, bool json);

#endif
