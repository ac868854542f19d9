/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of cores as the kernel writes them. */
#include "device/cpulist.h"

#include <stdio.h>
#include <stdlib.h>

#define HIGHEST_CPU 65535

/* A plain number at *p, which moves past it. */
static bool take_number(const char **p, int *out)
{
    long v = 0;
    const char *start = *p;
    while (**p >= '0' && **p <= '9' && v <= HIGHEST_CPU)
        v = v * 10 + (*(*p)++ - '0');
    *out = (int)v;
    return *p > start && v <= HIGHEST_CPU;
}

bool ew_cpulist_parse(const char *text, struct ew_cpulist *out)
{
    out->n = 0;
    for (const char *p = text; *p;) {
        int first, last;
        if (!take_number(&p, &first))
            return false;
        last = first;
        if (*p == '-' && (p++, !take_number(&p, &last)))
            return false;
        for (int i = first; i <= last && out->n < EW_MAX_CPUS; i++)
            out->cpu[out->n++] = i;
        if (*p == ',')
            p++;
        else if (*p)
            return false;
    }
    return true;
}

bool ew_cpulist_read(const struct ew_root *root, const char *name, struct ew_cpulist *out)
{
    char path[128], text[1024];
    out->n = 0;
    snprintf(path, sizeof(path), "sys/devices/system/cpu/%s", name);
    return ew_root_read(root, path, text, sizeof(text)) == EW_OK && ew_cpulist_parse(text, out);
}
