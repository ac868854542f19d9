/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing the width ratio that meets a limit, by a line fitted to measurements against the number
 * of parameters (Gealy and George, ACM TECS 23(3), 2024, section 5.3, equation 1). */
#ifndef EW_SCALE_SELECT_H
#define EW_SCALE_SELECT_H

#include "base/regress.h"
#include "scale/scaling.h"

/* A published line: Tables 4 and 5 of that study. */
struct ew_published_line {
    const char *device, *precision, *of, *unit; /* of: "latency", "memory" */
    double r, p, slope, intercept;              /* slope: unit per parameter */
    int n;                                      /* number of points, inferred from r and p */
};

extern const struct ew_published_line ew_published_lines[];
extern const int ew_n_published_lines;

struct ew_selected {
    double params; /* (limit - intercept) / slope */
    double ratio;  /* equation 1: sqrt(params / original) */
    double exact;  /* largest uniform ratio whose true number of parameters is at most params; 0:
                    * none */
    int64_t exact_params;
    int32_t widths[EW_MAX_GATES]; /* at `exact` */
};

/* EW_ERR_LIMIT, with the reason, if no ratio meets the limit. */
ew_err ew_select_ratio(const struct ew_scaling *s, double slope, double intercept, double limit,
                       struct ew_selected *out);

#endif
