/* SPDX-License-Identifier: Apache-2.0 */
/* Identifying processes uniquely, across PID reuse and reboots. */
#ifndef EW_BASE_PROCESS_H
#define EW_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

/* Identifier of the present boot; "": unknown. */
#define EW_BOOT_CHARS 64
void ew_process_boot(char out[EW_BOOT_CHARS]);

/* Start time of a process in ticks since boot; -1: no such process. */
long long ew_process_start(int pid);

/* A unique stamp: boot and start time. */
#define EW_STAMP_CHARS (EW_BOOT_CHARS + 24)
void ew_process_stamp(int pid, char out[EW_STAMP_CHARS]);

/* True if the process with this stamp is still running. */
bool ew_process_alive(int pid, const char *stamp);

/* Fork count: a different number in each forked child.  A child lacks the threads of objects made
 * under another number, and must not wait for them.  As fast as a load. */
unsigned ew_process_forks(void);

#endif
