/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates of a job's time, memory and disk space before it is run. */
#ifndef EW_STUDY_ESTIMATE_H
#define EW_STUDY_ESTIMATE_H

#include "store/store.h"
#include "study/study.h"

struct ew_estimate {
    double seconds;       /* nan: unknown */
    bool measured;        /* from earlier runs of this job; false: from its arithmetic */
    int64_t memory_bytes; /* EW_INT_ABSENT: unknown */
    int64_t disk_bytes;   /* while it runs */
};

/* FLOP/s that this machine sustains on whole networks, measured in a few milliseconds. */
ew_err ew_estimate_rate(double *flops_per_s);

/* `s` may be NULL. Unknown values stay absent, which is not a failure. */
ew_err ew_estimate_job(const struct ew_study_job *j, struct ew_store *s, double flops_per_s,
                       struct ew_estimate *out);

/* Bytes that a training step of a zoo network is planned to take, at side x side (0: its own) with
 * SGD and momentum; nothing is run. */
ew_err ew_estimate_training(const char *network, int64_t side, int64_t classes, int64_t batch,
                            int64_t *bytes);

#endif
