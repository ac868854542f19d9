/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing several networks in `edgewise bench`: output for measure/comparison.h. */
#ifndef EW_CLI_BENCH_CMD_H
#define EW_CLI_BENCH_CMD_H

#include "cli/cmd.h"
#include "measure/comparison.h"

/* bench A B ...: compares all arguments of the call.  db: a store, or NULL. */
ew_err ew_bench_compare(struct ew_cmd_call *c, const struct ew_compare_opts *o, const char *db);
/* bench --protocol engine, scale */
ew_err ew_bench_protocol_engine(struct ew_cmd_call *c, const struct ew_compare_opts *o);
ew_err ew_bench_protocol_scale(struct ew_cmd_call *c, const struct ew_compare_opts *o);

#endif
