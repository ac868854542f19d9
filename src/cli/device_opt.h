/* SPDX-License-Identifier: Apache-2.0 */
/* The options --device, --precision and --fast. */
#ifndef EW_CLI_DEVICE_OPT_H
#define EW_CLI_DEVICE_OPT_H

#include "base/field.h"
#include "cli/cmd.h"

/* clang-format off */
/* Option table entry; the struct has a `const char *device`. */
#define EW_DEVICE_FIELD(owner)                                                                     \
    {.name = "device", .type = EW_FIELD_STR, .offset = offsetof(owner, device),                    \
     .metavar = "DEVICE",                                                                          \
     .help = "device to run on, as listed by `edgewise devices`; default: $EW_DEVICE, or cpu"}
/* Option table entry; the struct has an `int precision`. */
#define EW_PRECISION_FIELD(owner)                                                                  \
    {.name = "precision", .type = EW_FIELD_ENUM, .offset = offsetof(owner, precision),             \
     .def = "default", .choices = ew_precision_names,                                              \
     .help = "arithmetic and storage of activations on a GPU; training keeps float32 weights; "     \
     "default: what DEVICE says (cuda,fp16), else fp32"}
/* Option table entry; the struct has a `bool fast`. */
#define EW_FAST_FIELD(owner)                                                                       \
    {.name = "fast", .type = EW_FIELD_BOOL, .offset = offsetof(owner, fast),                       \
     .help = "GPU: allow kernels with a nondeterministic summation order"}
/* clang-format on */

/* "default", "fp32", "tf32", "bf16", "fp16", NULL */
extern const char *const ew_precision_names[];

/* Applies the device and precision of the command line, if given, to this process and the processes
 * that it starts, through EW_DEVICE.  Fails if the device cannot be opened. */
ew_err ew_device_choose(const struct ew_cmd_line *line);
/* The same for options from another source, as a resumed checkpoint; device NULL: the one in
 * EW_DEVICE. */
ew_err ew_device_opt_use(const char *device, int precision, bool fast);

#endif
