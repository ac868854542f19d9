/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of `edgewise prune`: the command, and what it shows. */
#ifndef EW_CLI_PRUNE_CMD_H
#define EW_CLI_PRUNE_CMD_H

#include "cli/cmd.h"
#include "prune/prune_run.h"

struct ew_prune_opts {
    struct ew_train_opts train; /* data, and how to fine-tune */
    double keep;
    const char *macs, *params, *bytes, *latency;
    int importance; /* enum ew_importance */
    bool global;
    int64_t align, steps, score_batches;
    const char *output, *db, *device;
    int precision; /* one of ew_precision_names */
};

/* What came of it, for printing. */
struct ew_prune_shown {
    struct ew_pruned pruned;
    int64_t file_bytes;
    const char *file;
};

ew_err ew_prune_print(const struct ew_prune_shown *s);
ew_err ew_prune_print_json(const struct ew_prune_shown *s);

#endif
