/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of `edgewise prune`: the command, and what it shows. */
#ifndef EW_CLI_PRUNE_CMD_H
#define EW_CLI_PRUNE_CMD_H

#include "cli/cmd.h"
#include "prune/prune.h"
#include "train/options.h"

struct ew_prune_opts {
    struct ew_train_opts train; /* data, and how to fine-tune */
    double keep;
    const char *macs, *params, *bytes, *latency;
    int importance; /* enum ew_importance */
    bool global;
    int64_t align, steps, score_batches;
    const char *output, *db;
};

/* A layer that makes channels, before and after. */
struct ew_pruned_layer {
    const char *name; /* the graph's */
    int weight, axis; /* where its width stands */
    int64_t before;
};

struct ew_pruned {
    struct ew_graph *g;
    struct ew_pruned_layer *layers; /* owned */
    int n_layers;
    struct ew_cost cost_before, cost_after;
    double ms_before, ms_after;             /* of one image; timed in turns */
    double ratio;                           /* of them, by turns */
    double accuracy_before, accuracy_after; /* nan: not known */
    double accuracy_cut;                    /* right after the last cut, nan: not known */
    int64_t file_bytes;
    const char *file;
};

ew_err ew_prune_print(const struct ew_pruned *p);
ew_err ew_prune_print_json(const struct ew_pruned *p);

#endif
