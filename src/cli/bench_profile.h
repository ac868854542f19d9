/* SPDX-License-Identifier: Apache-2.0 */
/* The profile of `edgewise bench --profile`: all steps, then their sums by operator. */
#ifndef EW_CLI_BENCH_PROFILE_H
#define EW_CLI_BENCH_PROFILE_H

#include "base/json.h"
#include "measure/single_bench.h"

ew_err ew_profile_print(const struct ew_plan *p, const struct ew_single_result *r, bool train);
ew_err ew_profile_json(struct ew_json *j, const struct ew_plan *p,
                       const struct ew_single_result *r);

#endif
