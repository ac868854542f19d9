/* SPDX-License-Identifier: Apache-2.0 */
/* Processes sorted by CPU or memory use. */
#ifndef EW_DEVICE_PROCESSES_H
#define EW_DEVICE_PROCESSES_H

#include "base/rootfs.h"

#define EW_PROCESS_NAME 64

struct ew_process {
    int pid;
    double load;                /* % of a core since the last reading; -1: first reading */
    int64_t rss;                /* resident bytes */
    double ticks;               /* total CPU time */
    char name[EW_PROCESS_NAME]; /* program name */
};

struct ew_processes {
    struct ew_process *now, *before; /* sorted by pid */
    int n_now, n_before, cap_now, cap_before;
    int64_t now_ns, before_ns;
    int *order; /* indices into `now`, largest first */
    int n_order, cap_order;
};

/* Reads all processes; a root without /proc has none.  Fails if memory runs out. */
ew_err ew_processes_read(struct ew_processes *p, const struct ew_root *root);
/* Sorts by CPU use, or by memory. */
ew_err ew_processes_sort(struct ew_processes *p, bool by_memory);
void ew_processes_fini(struct ew_processes *p);

#endif
