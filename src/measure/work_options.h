/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a network (batch, threads, width, workers, precision), tried or not, as
 * configurations to choose from, by what stores of runs say. */
#ifndef EW_MEASURE_WORK_OPTIONS_H
#define EW_MEASURE_WORK_OPTIONS_H

#include "advise/choose.h"
#include "measure/work_source.h"

/* Whether the words are such factors; EW_ERR_USAGE where some are and others are not. */
ew_err ew_among_factors(const char *words, bool *are);

/* A setting of the factors. */
struct ew_work_setting {
    int64_t batch, threads, workers;
    double width;
    const char *precision; /* NULL: the usual one */
};

struct ew_among_work {
    const char *factors;        /* comma-separated */
    struct ew_work_asked asked; /* what is not a factor stays as it is here */
};

/* Every setting as an option: time is that of an image, latency that of a run, memory the
 * process's. `settings` has one for each option.  All lives in the source's arena. */
ew_err ew_options_of_work(struct ew_work_source *s, const struct ew_among_work *o,
                          struct ew_option **out, struct ew_work_setting **settings, int *n);

#endif
