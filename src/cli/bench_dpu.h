/* SPDX-License-Identifier: Apache-2.0 */
/* bench --device dpu: times from the model of the DPU.  Nothing is executed. */
#ifndef EW_CLI_BENCH_DPU_H
#define EW_CLI_BENCH_DPU_H

#include "backend/dpu/dpu_model.h"
#include "cli/cmd.h"
#include "graph/facts.h"
#include "network/network.h"
#include "study/recording.h"

struct ew_dpu_opts {
    const char *device; /* "dpu:kv260" */
    struct ew_network_opts net;
    bool sweep;
    const char *picture; /* plot of the sweep: FILE.svg; NULL: none */
    const char *db;      /* one network: the store to record in; NULL: none */
};

/* The device of this process if it is a DPU; else NULL. */
const char *ew_dpu_device(void);
/* The part after the colon: "kv260". */
const char *ew_dpu_arguments(const char *device);

/* One network: a table of its layers, and totals; several: one line each; with `sweep`: one network
 * over DPU sizes, core counts, clocks and memories. */
ew_err ew_bench_dpu(const struct ew_cmd_call *c, const struct ew_dpu_opts *o);

/* Records the times of a network, marked as modelled, and its size. */
ew_err ew_dpu_record(struct ew_recording *rec, const struct ew_facts *f,
                     const struct ew_dpu_config *c, const struct ew_dpu_times *t);

/* The protocol of the scaling study: its networks at four widths, scaled uniformly and by
 * NeuralScale. */
ew_err ew_bench_dpu_scale(const struct ew_cmd_call *c, const char *device);
/* The same for the trained networks in the arguments, with their accuracy on data set `eval`; db:
 * the store to record each in, NULL: none. */
ew_err ew_bench_dpu_accuracy(const struct ew_cmd_call *c, const char *device, const char *eval,
                             const char *db);

#endif
