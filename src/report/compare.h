/* SPDX-License-Identifier: Apache-2.0 */
/* Two boards, two versions, two anything: the same jobs held against each other. */
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

/* One row for each job and measure: both means, their ratio, and whether that is beyond what
 * repetitions vary by (Welch's test, 95 %). */
ew_err ew_compare_grid(const struct ew_results *r, const char *const side[2], struct ew_grid *g);

/* Puts the first side's bars and rows before the other's, as they were named. */
ew_err ew_compare_order(struct ew_figure *f, const char *const side[2], struct ew_arena *a);

/* The same in a few sentences: what else the sides differ in, and how many times as much one side
 * has of time and energy as the other. Fills text[]; returns how many there are. */
int ew_compare_findings(const struct ew_results *r, const char *const side[2],
                        char text[EW_FINDINGS][EW_FINDING_CHARS]);

#endif
