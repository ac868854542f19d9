/* SPDX-License-Identifier: Apache-2.0 */
/* Power modes as configurations to choose from: those that were measured, and untried ones by what
 * the laws say of them. */
#ifndef EW_ADVISE_STORE_MODE_CANDIDATES_H
#define EW_ADVISE_STORE_MODE_CANDIDATES_H

#include "advise/recommend.h"
#include "advise/store/advice_source.h"

/* `modes`: untried ones to consider, as ew_advice_modes reads them; NULL: rows without a time, and
 * all modes of the board where few were measured.  All lives in the source's arena. */
ew_err ew_candidates_of_modes(struct ew_advice_source *s, const char *workload, const char *modes,
                              struct ew_candidate **out, int *n);

/* The job that a configuration is for. */
struct ew_candidate_job {
    double times;                    /* so many of what was measured */
    double battery_wh, duty, idle_w; /* as of ew_life; battery_wh 0: none */
};

/* Time and energy of the whole job, and how long a battery lasts. */
ew_err ew_candidates_for_job(struct ew_arena *a, const struct ew_candidate_job *job,
                             struct ew_candidate *o, int n);

#endif
