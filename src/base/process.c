/* SPDX-License-Identifier: Apache-2.0 */
/* Boots and beginnings of processes, from /proc. */
#include "base/process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not base/file.h: a missing process is no error, and the thread's error message must stay, since
 * owners are looked up while cleaning up after another failure. */
static bool read_text(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "re");
    const size_t n = f ? fread(out, 1, size - 1, f) : 0;
    out[n] = '\0';
    if (f)
        fclose(f);
    return n > 0;
}

void ew_process_boot(char out[EW_BOOT_CHARS])
{
    char text[128];
    out[0] = '\0';
    if (read_text("/proc/sys/kernel/random/boot_id", text, sizeof(text))) {
        snprintf(out, EW_BOOT_CHARS, "%.60s", text);
        out[strcspn(out, "\n")] = '\0';
    }
}

/* Fields 3 and 22 of stat (proc(5)): the state, and when the process began; -1: none.  Of the first
 * thread, since emulators make up /proc/PID/stat of the program that they run. */
static long long read_stat(int pid, char *state)
{
    char path[64], text[4096];
    long long start = -1;
    *state = '\0';
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, pid);
    if (read_text(path, text, sizeof(text))) {
        const char *p = strrchr(text, ')');
        if (p && p[1] == ' ')
            *state = p[2];
        for (int i = 2; p && i < 22; i++)
            p = strchr(p + 1, ' ');
        if (p)
            start = strtoll(p + 1, NULL, 10);
    }
    return start;
}

long long ew_process_start(int pid)
{
    char state;
    return read_stat(pid, &state);
}

void ew_process_stamp(int pid, char out[EW_STAMP_CHARS])
{
    char boot[EW_BOOT_CHARS];
    ew_process_boot(boot);
    snprintf(out, EW_STAMP_CHARS, "%s/%lld", boot, ew_process_start(pid));
}

bool ew_process_alive(int pid, const char *stamp)
{
    char now[EW_STAMP_CHARS], state;
    ew_process_stamp(pid, now);
    /* A zombie has ended; the first process of a container may never reap it. */
    return pid > 0 && read_stat(pid, &state) >= 0 && state != 'Z' && strcmp(now, stamp) == 0;
}

static atomic_uint forks;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

static void begin_counting(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

unsigned ew_process_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin_counting);
    return atomic_load_explicit(&forks, memory_order_relaxed);
}
