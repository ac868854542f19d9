/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of the same jobs on two sides: two boards, versions, power modes or any other
 * property. */
#ifndef EW_REPORT_COMPARE_H
#define EW_REPORT_COMPARE_H

#include "report/figure_grid.h"
#include "report/findings.h"

/* Sets the side of each run that `side[0]` or `side[1]` means: "property=value", or the value of
 * board, unit, profile, version, power mode or study, or the beginning of a run's uid.  Fails where
 * one of them means no run. */
ew_err ew_compare_choose(struct ew_results *r, const char *const side[2]);

/* Drops runs without a side and those whose job only one side has, and gives each the name of its
 * job as label.  Fails where no job is left. */
ew_err ew_compare_match(struct ew_results *r, const char *const side[2]);

/* One row for each job and measure: both means, their ratio, and whether the difference is
 * significant (Welch's t-test, 5 %). */
ew_err ew_compare_grid(const struct ew_results *r, const char *const side[2], struct ew_grid *g);

/* Puts the first side's bars and rows before the other's, as they were named. */
ew_err ew_compare_order(struct ew_figure *f, const char *const side[2], struct ew_arena *a);

/* The same in a few sentences: other differences between the sides, and the ratios of time and
 * energy. Fills text[]; returns how many there are. */
int ew_compare_findings(const struct ew_results *r, const char *const side[2],
                        char text[EW_FINDINGS][EW_FINDING_CHARS]);

#endif
