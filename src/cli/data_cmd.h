/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of `edgewise data`. */
#ifndef EW_CLI_DATA_CMD_H
#define EW_CLI_DATA_CMD_H

#include "cli/cmd.h"
#include "data/data.h"
#include "data/load_args.h"

struct ew_data_opts {
    const char *from, *to, *sheet;
    int split, kind, format;
    int64_t train, test, classes, side, channels, seed; /* make */
    double noise;
    bool raw;
    struct ew_ints size; /* pack, bench */
    int64_t batch, epochs;
    struct ew_load_args load;
};

/* The data set known to `get` with the most similar name, or NULL. */
const char *ew_data_nearest(const char *what);

/* Sets a hint where data sets come from if `err` says that `what` was not found; returns `err`. */
ew_err ew_data_hint(struct ew_cmd_call *c, const char *what, ew_err err);

/* Opens a data set; sets a hint if it is not found. */
ew_err ew_data_open(struct ew_cmd_call *c, const char *what, struct ew_dataset **out);

/* The split of --split; by default of a set without classes the unlabelled one. */
enum ew_split ew_data_split(const struct ew_cmd_call *c, const struct ew_dataset *d);

ew_err ew_data_list(struct ew_cmd_call *c);
ew_err ew_data_info(struct ew_cmd_call *c, const char *what);
ew_err ew_data_bench(struct ew_cmd_call *c, const char *what);

#endif
