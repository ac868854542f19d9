/* SPDX-License-Identifier: Apache-2.0 */
/* Telling processes apart across reuse of their numbers and across reboots. */
#ifndef EW_BASE_PROCESS_H
#define EW_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

/* This boot of the machine as text; "" where it does not say. */
#define EW_BOOT_CHARS 64
void ew_process_boot(char out[EW_BOOT_CHARS]);

/* When a process began, in ticks since boot; -1: there is no such process. */
long long ew_process_start(int pid);

/* Boot and beginning as one text; no two processes have the same. */
#define EW_STAMP_CHARS (EW_BOOT_CHARS + 24)
void ew_process_stamp(int pid, char out[EW_STAMP_CHARS]);

/* The process that had this stamp still runs. */
bool ew_process_alive(int pid, const char *stamp);

/* Which process this is since the first call: another number after each fork.  The threads of
 * what was made under another number stayed behind: nothing of it may wait for them.  As fast as a
 * load. */
unsigned ew_process_forks(void);

#endif
