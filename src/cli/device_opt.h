/* SPDX-License-Identifier: Apache-2.0 */
/* --device, of every command that runs a network. */
#ifndef EW_CLI_DEVICE_OPT_H
#define EW_CLI_DEVICE_OPT_H

#include "base/field.h"
#include "cli/cmd.h"

/* clang-format off */
/* A row of a command's option table; the struct has a `const char *device`. */
#define EW_DEVICE_FIELD(owner)                                                                     \
    {.name = "device", .type = EW_FIELD_STR, .offset = offsetof(owner, device),                    \
     .metavar = "DEVICE", .help = "what runs the network, as `edgewise devices` lists it; "        \
     "default: $EW_DEVICE, or cpu"}
/* clang-format on */

/* Makes the device of the command line, where it has one, the one of all that the command runs, in
 * this process and in those that it starts: it becomes EW_DEVICE.  Fails where it cannot be opened.
 */
ew_err ew_device_choose(const struct ew_cmd_line *line);

#endif
