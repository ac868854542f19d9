/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions from databases of runs, for networks, batches, widths, threads, workers, precisions
 * and machines that were not measured. */
#ifndef EW_MEASURE_WORK_SOURCE_H
#define EW_MEASURE_WORK_SOURCE_H

#include "advise/store/work_store.h"
#include "advise/work_fit.h"
#include "network/network.h"

/* A run to predict. */
struct ew_work_query {
    const char *network;
    const char *
        on; /* part of the machine's or device's name; NULL: the first machine of the first store */
    const char *precision; /* NULL: the default */
    const char *data;      /* training: with the loader of this data set; NULL: without */
    int64_t workers;       /* workers of that loader */
    struct ew_network_opts net;
    int64_t threads; /* 0: all CPUs */
    bool train;
};

/* The rows of the databases, and the fitted model. */
struct ew_work_source {
    struct ew_arena arena;
    struct ew_work_rows rows;
    struct ew_work_run *runs; /* of each row */
    double *time;
    struct ew_work_predictor *predictor;
    struct ew_work_plan *plans; /* of earlier requests */
};

/* Reads the comma-separated stores and fits to them.  Release with close, also on failure. */
ew_err ew_work_source_open(const char *stores, struct ew_work_source *s);
void ew_work_source_close(struct ew_work_source *s);

struct ew_work_prediction {
    struct ew_interval run; /* s */
    double measured_s;      /* nan: never run */
    double memory_mib;      /* of the process: the plan, and the rest */
    const char *machine;
    int64_t cores, threads;
};

/* Predicts the run `o`. */
ew_err ew_work_source_predict(struct ew_work_source *s, const struct ew_work_query *o,
                              struct ew_work_prediction *out);

#endif
