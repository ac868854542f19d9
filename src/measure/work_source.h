/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions from databases of runs for untried networks, batches, widths, threads, workers,
 * precisions and machines. */
#ifndef EW_MEASURE_WORK_SOURCE_H
#define EW_MEASURE_WORK_SOURCE_H

#include "advise/store/work_store.h"
#include "advise/work_fit.h"
#include "network/network.h"

/* A run of a network to predict. */
struct ew_work_asked {
    const char *network;
    const char *on;        /* part of a machine's or device's name; NULL: the first store's first */
    const char *precision; /* NULL: the usual one */
    const char *data;      /* of training: with the loader of this data set; NULL: without */
    int64_t workers;       /* of that loader */
    struct ew_network_opts net;
    int64_t threads; /* 0: all of the machine */
    bool train;
};

/* The rows of the databases, and the fit to them. */
struct ew_work_source {
    struct ew_arena arena;
    struct ew_work_rows rows;
    struct ew_work_run *runs; /* of each row */
    double *time;
    struct ew_work_predictor *predictor;
    struct ew_work_plan *plans; /* that were asked for */
};

/* Reads the comma-separated stores and fits to them.  Release with close, whether it failed or not.
 */
ew_err ew_work_source_open(const char *stores, struct ew_work_source *s);
void ew_work_source_close(struct ew_work_source *s);

struct ew_work_answer {
    struct ew_guess run; /* s */
    double measured_s;   /* nan: this was never run */
    double memory_mib;   /* of the process: the plan, and the program without one */
    const char *machine;
    int64_t cores, threads;
};

/* Predicts the run `o`. */
ew_err ew_work_source_ask(struct ew_work_source *s, const struct ew_work_asked *o,
                          struct ew_work_answer *out);

#endif
