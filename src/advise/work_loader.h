/* SPDX-License-Identifier: Apache-2.0 */
/* Time of a training step with its loader threads. */
#ifndef EW_ADVISE_WORK_LOADER_H
#define EW_ADVISE_WORK_LOADER_H

struct ew_loader_case {
    double compute_s; /* of a step alone, on `threads` */
    double load_s;    /* of one worker for a batch */
    double workers;   /* 0: loading and computing take turns */
    double threads, cores;
};

/* Seconds of a step.  Loading and computing overlap, and share the cores if they need more than
 * there are. */
double ew_loader_step(const struct ew_loader_case *c);

#endif
