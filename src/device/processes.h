/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that use a board most. */
#ifndef EW_DEVICE_PROCESSES_H
#define EW_DEVICE_PROCESSES_H

#include "base/rootfs.h"

#define EW_PROCESS_NAME 64

struct ew_process {
    int pid;
    double load;  /* % of a core since the reading before; -1: seen for the first time */
    int64_t rss;  /* bytes in memory */
    double ticks; /* CPU time so far */
    char name[EW_PROCESS_NAME]; /* of its program */
};

struct ew_processes {
    struct ew_process *now, *before; /* by pid, rising */
    int n_now, n_before, cap_now, cap_before;
    int64_t now_ns, before_ns;
    int *order; /* of `now`, the largest first */
    int n_order, cap_order;
};

/* Reads all processes under the root; a root without /proc has none.  Fails where memory runs out.
 */
ew_err ew_processes_read(struct ew_processes *p, const struct ew_root *root);
/* Puts them in order: by CPU use, or by memory. */
ew_err ew_processes_sort(struct ew_processes *p, bool by_memory);
void ew_processes_fini(struct ew_processes *p);

#endif
