/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas of control groups: cpu.max of the process's group and those around it (version 2), or the
 * two files of a container's group (version 1). */
#include "base/cpu_quota.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS      "sys/fs/cgroup"
#define GROUP_CHARS 1024

/* quota microseconds of CPU time in every period. */
static int cpus_of(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return INT_MAX;
    const long long cpus = quota / period + (quota % period != 0);
    return cpus < INT_MAX ? (int)cpus : INT_MAX;
}

/* "200000 100000", or "max 100000". */
static int group_cpus(const struct ew_root *root, const char *group)
{
    char path[GROUP_CHARS + 64], text[64], *end;
    snprintf(path, sizeof(path), GROUPS "%s/cpu.max", group);
    if (ew_root_read(root, path, text, sizeof(text)) != EW_OK)
        return INT_MAX;
    const long long quota = strtoll(text, &end, 10);
    return cpus_of(quota, strtoll(end, NULL, 10));
}

/* The process's group of version 2, "/a/b"; "" in a container, whose group is the root of what it
 * sees, and without control groups. */
static void own_group(const struct ew_root *root, char group[GROUP_CHARS])
{
    char text[4096];
    group[0] = '\0';
    if (ew_root_read(root, "proc/self/cgroup", text, sizeof(text)) != EW_OK)
        return;
    const char *line = strncmp(text, "0::/", 4) == 0 ? text : strstr(text, "\n0::/");
    if (line)
        snprintf(group, GROUP_CHARS, "%.*s", (int)strcspn(strchr(line, '/'), "\n"),
                 strchr(line, '/'));
}

int ew_cpu_quota(const struct ew_root *root)
{
    char group[GROUP_CHARS];
    int64_t quota, period;
    own_group(root, group);
    int least = group_cpus(root, "");
    for (char *slash; (slash = strrchr(group, '/')); *slash = '\0') {
        const int cpus = group_cpus(root, group);
        least = cpus < least ? cpus : least;
    }
    if (ew_root_read_int(root, GROUPS "/cpu/cpu.cfs_quota_us", &quota) == EW_OK &&
        ew_root_read_int(root, GROUPS "/cpu/cpu.cfs_period_us", &period) == EW_OK) {
        const int cpus = cpus_of(quota, period);
        least = cpus < least ? cpus : least;
    }
    return least;
}
