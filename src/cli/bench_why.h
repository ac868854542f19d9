/* SPDX-License-Identifier: Apache-2.0 */
/* Why a step of a plan has its kernel. */
#ifndef EW_CLI_BENCH_WHY_H
#define EW_CLI_BENCH_WHY_H

#include "plan/plan.h"

/* Prints the candidates of every step that is called `step`, or of the one with this number from 1
 * on: estimates, the condition that rules each out and, where the plan was tuned, times. */
ew_err ew_bench_why(const struct ew_plan *p, const char *step, bool tuned, bool json);

#endif
