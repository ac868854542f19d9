/* SPDX-License-Identifier: Apache-2.0 */
/* What a job will take, before it is run: time, memory, disk. */
#ifndef EW_STUDY_ESTIMATE_H
#define EW_STUDY_ESTIMATE_H

#include "store/store.h"
#include "study/study.h"

struct ew_estimate {
    double seconds;       /* nan: no idea */
    bool measured;        /* from earlier runs of this job, else from its arithmetic */
    int64_t memory_bytes; /* EW_INT_ABSENT: no idea */
    int64_t disk_bytes;   /* while it runs */
};

/* Arithmetic per second that this machine can be trusted to do; measured in some milliseconds. */
ew_err ew_estimate_rate(double *flops_per_s);

/* `s` may be NULL.  What cannot be told stays absent; that is no failure. */
ew_err ew_estimate_job(const struct ew_study_job *j, struct ew_store *s, double flops_per_s,
                       struct ew_estimate *out);

/* Bytes that a training step of a zoo network is planned to take, at side x side (0: its own) with
 * SGD and momentum; nothing is run. */
ew_err ew_estimate_training(const char *network, int64_t side, int64_t classes, int64_t batch,
                            int64_t *bytes);

#endif
