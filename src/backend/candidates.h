/* SPDX-License-Identifier: Apache-2.0 */
/* Why a step has the kernel that it has: the kernels that its backend knows for such a step, and
 * which condition keeps each from running it. */
#ifndef EW_BACKEND_CANDIDATES_H
#define EW_BACKEND_CANDIDATES_H

#include "backend/backend.h"

struct ew_kernel_candidate {
    const char *name;
    const char *technique; /* its folder */
    const char *refused;   /* the condition that does not hold; NULL: it can run it */
    const char *detail;    /* what else was chosen with it; NULL: nothing */
    double cycles;         /* by a model of the kernel, on one core; 0: there is none, or it was
                            * refused for something else */
    double roofline;       /* cycles of its arithmetic at the peak, or of its bytes at what a core's
                            * L2 gives, whichever is more; 0: it cannot run it */
    bool wraps;            /* looks at the data as it runs, and else runs the next one */
};

/* In the order of preference; at most `most`.  Returns how many. */
int ew_backend_candidates(const struct ew_kernel_query *query, struct ew_kernel_candidate *out,
                          int most);

#endif
