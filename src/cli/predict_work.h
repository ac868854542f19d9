/* SPDX-License-Identifier: Apache-2.0 */
/* `predict --network` and `predict --check` on stores of runs: networks, batches, widths, threads,
 * workers, precisions and machines that were never tried. */
#ifndef EW_CLI_PREDICT_WORK_H
#define EW_CLI_PREDICT_WORK_H

#include "advise/store/work_store.h"
#include "advise/work_fit.h"
#include "cli/cmd.h"
#include "network/network.h"

struct ew_work_opts {
    const char *stores; /* comma-separated; NULL: a first guess by the board's model */
    const char *board;  /* to guess for; NULL: none */
    const char *network;
    const char *on;        /* part of a machine's or device's name; NULL: the first store's first */
    const char *precision; /* NULL: the usual one */
    const char *data;      /* of training: with the loader of this data set; NULL: without */
    int64_t workers;       /* of that loader */
    struct ew_network_opts net;
    int64_t threads; /* 0: all of the machine */
    bool train;
};

ew_err ew_predict_work(const struct ew_work_opts *o, bool json);

/* What stores of runs say. */
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
    double memory_mib;   /* of the plan; not of what runs it */
    const char *machine;
    int64_t cores, threads;
};

/* What `o` would take, its stores and board aside. */
ew_err ew_work_source_ask(struct ew_work_source *s, const struct ew_work_opts *o,
                          struct ew_work_answer *out);

/* Fits to a third of the stores' runs and predicts the others; leaves out each network in turn.
 * `html`: a page of pictures; NULL: none. */
ew_err ew_predict_work_check(const char *stores, const char *html, bool json);

#endif
