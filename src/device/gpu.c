/* SPDX-License-Identifier: Apache-2.0 */
/* Which devfreq entry is the GPU.  Paths differ between boards and releases, so the device tree
 * node is read; without one the entry is named after the node. */
#include "device/gpu.h"

#include <stdio.h>
#include <string.h>

static bool is_gpu(const char *node)
{
    static const char *const names[] = {"gpu", "gv11b", "gp10b", "ga10b", "gb10b", "gm20b"};
    for (size_t i = 0; i < EW_COUNT(names); i++)
        if (strcmp(node, names[i]) == 0)
            return true;
    return false;
}

/* "17000000.gv11b" ends in the node's name; Thor has gpu-gpc-0. */
static bool named_gpu(const char *entry)
{
    const char *dot = strrchr(entry, '.');
    return (dot && is_gpu(dot + 1)) || strncmp(entry, "gpu-gpc", 7) == 0;
}

bool ew_gpu_is_entry(const struct ew_root *root, const char *entry)
{
    char path[256], node[64];
    snprintf(path, sizeof(path), "sys/class/devfreq/%s/device/of_node/name", entry);
    const bool told = ew_root_read(root, path, node, sizeof(node)) == EW_OK;
    return told ? is_gpu(node) : named_gpu(entry);
}
