/* SPDX-License-Identifier: Apache-2.0 */
/* Experimental design: the modes whose measurement reduces the uncertainty about all others most,
 * averaged over typical networks. */
#ifndef EW_ADVISE_DESIGN_H
#define EW_ADVISE_DESIGN_H

#include "advise/law.h"
#include "base/err.h"

struct ew_design {
    const struct ew_mode *candidates;
    int n;
    const int *measured; /* candidates that are known already; may be NULL */
    int n_measured;
};

/* The gain of one more mode. */
struct ew_design_step {
    int candidate;
    double time_before, time_after; /* standard deviation of ln over all candidates, typical */
    double power_before, power_after;
};

/* Picks `want` more candidates, the best first; fewer where there are no more.  Greedy: each step
 * takes the mode that reduces the remaining variance most (Seo et al., "Gaussian process
 * regression: active data selection", IJCNN 2000, on the laws linearised at typical parameters). */
ew_err ew_design_modes(const struct ew_design *d, int want, struct ew_design_step *out, int *n_out);

#endif
