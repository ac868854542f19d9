/* SPDX-License-Identifier: Apache-2.0 */
/* `edgewise bench --against DB`: a recorded run of the same benchmark as the baseline. */
#ifndef EW_CLI_BENCH_AGAINST_H
#define EW_CLI_BENCH_AGAINST_H

#include "base/json.h"
#include "cli/bench_show.h"
#include "cli/cmd.h"

/* Finds the newest finished run in the database of --against with the network's file name, the same
 * options and this machine's instruction set.  Without --against *out is left empty. */
ew_err ew_baseline_find(struct ew_cmd_call *c, struct ew_baseline *out);

/* These do nothing without a baseline. */
ew_err ew_baseline_print(const struct ew_bench_shown *s);
void ew_baseline_json(struct ew_json *j, const struct ew_bench_shown *s);
/* Fails if the shortest run took longer than --max-slowdown allows. */
ew_err ew_baseline_check(const struct ew_bench_shown *s);

#endif
