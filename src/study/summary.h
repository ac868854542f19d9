/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a run from its epochs, and a study's figures beside published ones. */
#ifndef EW_STUDY_SUMMARY_H
#define EW_STUDY_SUMMARY_H

#include "store/store.h"
#include "study/study.h"

/* Adds metrics for each field of the run's epochs: NAME is the mean over all but the first (which
 * fills caches; alone it counts), NAME_first is the first one's, of scores NAME is the last one's.
 * The time of an epoch, wall_s, is called epoch_s.  A run without epochs gets none; a metric that
 * the run has already is left. */
ew_err ew_summary_add(struct ew_store *s, int64_t run);

/* A published value and ours. */
struct ew_published_comparison {
    const struct ew_published_row *published;
    int64_t jobs;  /* jobs of the study to which it applies: 0 if a reduced size lacks them */
    int64_t runs;  /* of these that are done */
    int64_t noisy; /* one of these runs was noisy, and the value is sensitive to it */
    bool higher;   /* higher is better, according to our metric */
    double value, spread;
    const char *quality; /* of ours; NULL: none */
};

/* One for each published figure of the study, from its finished runs on the device `unit`. */
ew_err ew_published_compare(struct ew_store *s, const struct ew_study *study, const char *unit,
                            struct ew_arena *a, struct ew_published_comparison **out);

#endif
