/* SPDX-License-Identifier: Apache-2.0 */
/* Why a step has its kernel: all kernels of the backend for its operator, and for each the
 * condition that excludes it. */
#ifndef EW_BACKEND_CANDIDATES_H
#define EW_BACKEND_CANDIDATES_H

#include "backend/backend.h"

struct ew_kernel_candidate {
    const char *name;
    const char *technique; /* its folder under kernel/ */
    const char *refused;   /* the first condition that does not hold; NULL: it supports the step */
    const char *detail;    /* further choices, such as the wgrad method; NULL: none */
    double cycles;         /* estimated cycles on one core; 0: no estimate, or excluded by another
                            * condition */
    double roofline;       /* lower bound of the cycles: arithmetic at peak rate or bytes at L2
                            * bandwidth of one core, whichever is more; 0: excluded */
    bool wraps;            /* checks the data at run time, and falls back to the next candidate */
};

/* In the order of preference; at most `most`.  Returns how many. */
int ew_backend_candidates(const struct ew_kernel_query *query, struct ew_kernel_candidate *out,
                          int most);

#endif
