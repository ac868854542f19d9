/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of a network (batch, threads, width, workers, precision), measured or not, as
 * candidates predicted from stores of runs. */
#ifndef EW_MEASURE_WORK_CANDIDATES_H
#define EW_MEASURE_WORK_CANDIDATES_H

#include "advise/recommend.h"
#include "measure/work_source.h"

/* Whether all words are such factors; EW_ERR_USAGE if only some are. */
ew_err ew_work_factors_match(const char *words, bool *are);

/* Values of the factors. */
struct ew_work_setting {
    int64_t batch, threads, workers;
    double width;
    const char *precision; /* NULL: the default */
};

struct ew_work_space {
    const char *factors;        /* comma-separated */
    struct ew_work_query query; /* values of what is not a factor */
};

/* Every combination as a candidate: time is per image, latency per run, memory of the process.
 * `settings` has one element per candidate.  Everything is allocated in the source's arena. */
ew_err ew_candidates_of_work(struct ew_work_source *s, const struct ew_work_space *o,
                             struct ew_candidate **out, struct ew_work_setting **settings, int *n);

#endif
