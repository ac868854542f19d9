/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of cores as the kernel writes them: "0-3,6". */
#ifndef EW_DEVICE_CPULIST_H
#define EW_DEVICE_CPULIST_H

#include <stdbool.h>

#include "base/rootfs.h"

#define EW_MAX_CPUS 512

struct ew_cpulist {
    int n;
    int cpu[EW_MAX_CPUS];
};

/* False where the text is not such a list; more than EW_MAX_CPUS are cut. */
bool ew_cpulist_parse(const char *text, struct ew_cpulist *out);

/* Of sys/devices/system/cpu/<name>: "present", "online", "possible". */
bool ew_cpulist_read(const struct ew_root *root, const char *name, struct ew_cpulist *out);

#endif
