/* SPDX-License-Identifier: Apache-2.0 */
/* Which entry of /sys/class/devfreq is a board's GPU; used for reading and for setting its clock.
 */
#ifndef EW_DEVICE_GPU_H
#define EW_DEVICE_GPU_H

#include <stdbool.h>

#include "base/rootfs.h"

bool ew_gpu_is_entry(const struct ew_root *root, const char *entry);

#endif
