/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of `edgewise scale`. */
#ifndef EW_CLI_SCALE_CMD_H
#define EW_CLI_SCALE_CMD_H

#include "cli/cmd.h"
#include "scale/scaling.h"

struct ew_scale_opts {
    struct ew_ints input;
    int64_t classes;
    const char *from, *output, *svg, *where, *metric, *latency;
    double ratio, params, macs, limit, energy;
    int64_t memory, iteration;
    bool published;
    /* search */
    const char *data, *augment, *mean, *std, *db;
    int64_t iterations, warmup, max_epochs, prune_every, prune_units, batch, samples, seed, threads;
    double fraction, lr, momentum, weight_decay;
};

ew_err ew_scale_select(struct ew_cmd_call *c, const struct ew_scaling *s);

/* One line of the plot. */
struct ew_width_line {
    const char *name, *colour;
    const int32_t *widths;
};

ew_err ew_scale_picture(const char *path, const struct ew_scaling *s,
                        const struct ew_width_line *lines, int n);
ew_err ew_scale_search(struct ew_cmd_call *c, const struct ew_scaling *s);

#endif
