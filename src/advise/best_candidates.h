/* SPDX-License-Identifier: Apache-2.0 */
/* The best configuration of every network in a database, within limits, as text at the top of a
 * report. */
#ifndef EW_ADVISE_BEST_CANDIDATES_H
#define EW_ADVISE_BEST_CANDIDATES_H

#include "advise/measured.h"
#include "advise/recommend.h"

/* One candidate for each measured row of the workload; nothing is predicted. */
ew_err ew_candidates_of_rows(struct ew_arena *a, const struct ew_measured *m, const char *workload,
                             struct ew_candidate **out, int *n);

/* A line for each workload: "resnet18: bench: batch 8, threads 2: 12.3 ms, 5.1 W", or why none
 * fits. `limits` is a list as of recommend ("power=10W,latency=20ms"), NULL: none; `goal` a
 * criterion's name.  *out lives in the arena. */
ew_err ew_best_candidates_text(struct ew_arena *a, const struct ew_measured *m, const char *goal,
                               const char *limits, const char **out);

/* Reads a list of limits, separated by commas. */
ew_err ew_limits_parse(const char *text, struct ew_limit out[EW_LIMITS], int *n);

#endif
