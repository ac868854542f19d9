/* SPDX-License-Identifier: Apache-2.0 */
/* Recording the measurements of a command if --db asks for it. */
#ifndef EW_CLI_RECORDED_H
#define EW_CLI_RECORDED_H

#include "cli/cmd.h"
#include "graph/graph.h"
#include "study/recording.h"

/* Begins recording this command line; its arguments are the network, or the command of `monitor`.
 * db NULL: nothing is recorded. */
ew_err ew_cmd_record(const struct ew_cmd_call *c, const char *db, struct ew_recording *out);

/* Records properties of the network: parameters, FLOPs, MACs, planned bytes per parameter. */
ew_err ew_facts_record(struct ew_recording *rec, const struct ew_graph *g, double planned_bytes);

#endif
