/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `edgewise bench` for several networks: what measure/comparison.h measures, shown. */
#ifndef EW_CLI_BENCH_CMD_H
#define EW_CLI_BENCH_CMD_H

#include "cli/cmd.h"
#include "measure/comparison.h"

/* bench A B ...: all of the call's arguments.  db: a store, or NULL. */
ew_err ew_bench_compare(struct ew_cmd_call *c, const struct ew_compare_opts *o, const char *db);
/* bench --protocol engine, scale */
ew_err ew_bench_protocol_engine(struct ew_cmd_call *c, const struct ew_compare_opts *o);
ew_err ew_bench_protocol_scale(struct ew_cmd_call *c, const struct ew_compare_opts *o);

#endif
