/* SPDX-License-Identifier: Apache-2.0 */
/* Available memory: from /proc/meminfo, and from the control group (a container's limit), of which
 * the former knows nothing. */
#include "train/memory_left.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"

#define MAX_BYTES 65536

static size_t system_left(void)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size;
    if (ew_file_read("/proc/meminfo", MAX_BYTES, &text, &size) != EW_OK)
        return SIZE_MAX;
    const char *at = strstr(text, "MemAvailable:");
    return at ? (size_t)strtoull(at + strlen("MemAvailable:"), NULL, 10) * 1024 : SIZE_MAX;
}

/* Reads a number of the control group; SIZE_MAX for "max" or none. */
static size_t group_number(const char *path)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size;
    int64_t v;
    if (ew_file_read(path, MAX_BYTES, &text, &size) != EW_OK)
        return SIZE_MAX;
    text[strcspn(text, "\n")] = '\0';
    return ew_num_int(text, &v) && v >= 0 ? (size_t)v : SIZE_MAX;
}

static size_t group_left(const char *limit, const char *usage)
{
    const size_t most = group_number(limit), now = group_number(usage);
    if (most == SIZE_MAX || now == SIZE_MAX)
        return SIZE_MAX;
    return most > now ? most - now : 0;
}

size_t ew_memory_left(void)
{
    const size_t left[] = {
        system_left(),
        group_left("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        group_left("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                   "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    };
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < EW_COUNT(left); i++)
        least = left[i] < least ? left[i] : least;
    return least;
}
