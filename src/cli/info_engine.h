/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `edgewise info` for an engine. */
#ifndef EW_CLI_INFO_ENGINE_H
#define EW_CLI_INFO_ENGINE_H

#include "cli/cmd.h"
#include "graph/graph.h"

/* Files that info writes; NULL: not written. */
struct ew_info_files {
    const char *svg, *html;
};

ew_err ew_info_write(const struct ew_graph *g, const struct ew_info_files *files);

/* Loads the engine and prints it, as JSON if the call asks for it. */
ew_err ew_info_engine(const struct ew_cmd_call *c, const char *path,
                      const struct ew_info_files *files);

#endif
