/* SPDX-License-Identifier: Apache-2.0 */
/* Qualitative comparison with published results.  Times of two machines do not differ by one
 * factor, but one can compare which setting is faster than which, which is the best, and whether a
 * larger value helps. */
#ifndef EW_STUDY_TREND_AGREEMENT_H
#define EW_STUDY_TREND_AGREEMENT_H

#include "study/summary.h"

/* Figures that differ in one setting alone. */
struct ew_trend_agreement {
    const char *metric, *board;
    const char *key;   /* the setting that differs: "workers" */
    const char *fixed; /* the others: "network=lenet5" */
    int n;             /* values of it that both sides have */
    int pairs, agree;  /* published pairs over 3 % apart; those with the same order here */
    bool highest;      /* the highest value is best; else the lowest */
    bool noisy;        /* one of our runs was noisy */
    const char *best, *best_here; /* values of the setting with the best figure */
    int trend, trend_here;        /* of numbers: -1 falls, 1 rises, 0 neither; both 0: no numbers */
};

/* Finds all such sets among the comparisons that have our value; from the arena. */
ew_err ew_trend_agreement_find(const struct ew_published_comparison *list, int n,
                               struct ew_arena *a, struct ew_trend_agreement **out, int *n_out);

/* "same order, same lowest (4), same trend (falls)"; returns buf. */
#define EW_TREND_AGREEMENT_CHARS 200
const char *ew_trend_agreement_text(const struct ew_trend_agreement *s,
                                    char buf[EW_TREND_AGREEMENT_CHARS]);

/* Whether order, optimum and trend all agree. */
bool ew_trend_agreement_holds(const struct ew_trend_agreement *s);

#endif
