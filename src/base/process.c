/* SPDX-License-Identifier: Apache-2.0 */
/* Boots and beginnings of processes, from /proc. */
#include "base/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

void ew_process_boot(char out[EW_BOOT_CHARS])
{
    char *text = NULL;
    size_t size;
    out[0] = '\0';
    if (ew_file_read("/proc/sys/kernel/random/boot_id", 4096, &text, &size) == EW_OK) {
        snprintf(out, EW_BOOT_CHARS, "%.60s", text);
        out[strcspn(out, "\n")] = '\0';
    }
    free(text);
}

/* Field 22 of stat (proc(5)).  Of the first thread, since emulators make up /proc/PID/stat of the
 * program that they run. */
long long ew_process_start(int pid)
{
    char path[64], *text = NULL;
    size_t size;
    long long start = -1;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, pid);
    if (ew_file_read(path, 4096, &text, &size) == EW_OK) {
        const char *p = strrchr(text, ')');
        for (int i = 2; p && i < 22; i++)
            p = strchr(p + 1, ' ');
        if (p)
            start = strtoll(p + 1, NULL, 10);
    }
    free(text);
    return start;
}

void ew_process_stamp(int pid, char out[EW_STAMP_CHARS])
{
    char boot[EW_BOOT_CHARS];
    ew_process_boot(boot);
    snprintf(out, EW_STAMP_CHARS, "%s/%lld", boot, ew_process_start(pid));
}

bool ew_process_alive(int pid, const char *stamp)
{
    char now[EW_STAMP_CHARS];
    ew_process_stamp(pid, now);
    return pid > 0 && ew_process_start(pid) >= 0 && strcmp(now, stamp) == 0;
}
