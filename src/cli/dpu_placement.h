/* SPDX-License-Identifier: Apache-2.0 */
/* compile --device dpu: which parts of a network run on the DPU and which on the host. */
#ifndef EW_CLI_DPU_PLACEMENT_H
#define EW_CLI_DPU_PLACEMENT_H

#include "base/json.h"
#include "graph/graph.h"

/* Prints the parts in execution order, and why a part runs on the host; `j`: as a list "parts" of
 * that object instead of a table. */
ew_err ew_dpu_placement(const struct ew_graph *g, struct ew_json *j);

#endif
