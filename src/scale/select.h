/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing the ratio: a line through what was measured against parameters, and from it the width of
 * a network that meets a limit (Gealy and George, ACM TECS 23(3), 2024, section 5.3, equation 1).
 */
#ifndef EW_SCALE_SELECT_H
#define EW_SCALE_SELECT_H

#include "base/regress.h"
#include "scale/scaling.h"

/* A published line: Tables 4 and 5 of that study. */
struct ew_published_line {
    const char *device, *precision, *of, *unit; /* of: "latency", "memory" */
    double r, p, slope, intercept;              /* per parameter, in the unit */
    int n;                                      /* points, by which r and p agree */
};

extern const struct ew_published_line ew_published_lines[];
extern const int ew_n_published_lines;

struct ew_selected {
    double params; /* that meet the limit by the line: (y - b) / m */
    double ratio;  /* equation 1: sqrt(params / original) */
    double exact;  /* the largest uniform ratio whose true count is not over params; 0: none */
    int64_t exact_params;
    int32_t widths[EW_MAX_GATES]; /* at `exact` */
};

/* Fails with EW_ERR_LIMIT, and says why, where no ratio meets the limit. */
ew_err ew_select_ratio(const struct ew_scaling *s, double slope, double intercept, double limit,
                       struct ew_selected *out);

#endif
