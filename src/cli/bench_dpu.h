/* SPDX-License-Identifier: Apache-2.0 */
/* bench --device dpu: what the model of the DPU says of networks.  Nothing is run. */
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
    const char *picture; /* of the sweep: FILE.svg; NULL: none */
    const char *db;      /* one network: the store that keeps it; NULL: none */
};

/* The device that commands of this process run on, where it is a DPU; else NULL. */
const char *ew_dpu_device(void);
/* What stands after its name: "kv260". */
const char *ew_dpu_arguments(const char *device);

/* One network: a table of its layers and the sums; several: a line each; with `sweep` one over
 * sizes, cores, clocks and memories. */
ew_err ew_bench_dpu(const struct ew_cmd_call *c, const struct ew_dpu_opts *o);

/* The times of a network, marked as modelled, and its size. */
ew_err ew_dpu_record(struct ew_recording *rec, const struct ew_facts *f,
                     const struct ew_dpu_config *c, const struct ew_dpu_times *t);

/* The scaling study's protocol: its networks at four widths, uniform and by NeuralScale. */
ew_err ew_bench_dpu_scale(const struct ew_cmd_call *c, const char *device);
/* The same of the trained networks that the command names, with accuracies on data set `eval`; db:
 * the store that keeps each, NULL: none. */
ew_err ew_bench_dpu_accuracy(const struct ew_cmd_call *c, const char *device, const char *eval,
                             const char *db);

#endif
